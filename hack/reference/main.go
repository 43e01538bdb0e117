// Command reference writes what docs/reference.md needs beyond crd-ref-docs, as templates for it: the package's words
// (constants that belong to no type, with their comments), the field selectors, and the defaults, found by applying
// them. It refuses to describe types: the tool does.
//
//	go run ./hack/reference apis/sandbox/v1alpha1 >words.tpl
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/reference <folder of the types>")
		os.Exit(2)
	}
	templates, err := generate(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
	fmt.Print(templates)
}

// generate gives the templates "words", "wordsIndex", "selectors" and "default"; the last is given <type>.<field>.
func generate(dir string) (string, error) {
	groups, err := readWords(dir)
	if err != nil {
		return "", err
	}
	defaults, err := findDefaults()
	if err != nil {
		return "", err
	}
	var index, words strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&index, "- [%s](#%s)\n", g.title, anchor(g.title))
		words.WriteString(g.markdown())
	}
	return define("wordsIndex", index.String()) + define("words", words.String()) + define("default", lookup(defaults)) +
		define("selectors", "`"+strings.Join(v1alpha1.ClaimFieldLabels, "`, `")+"`"), nil
}

func define(name, body string) string {
	return fmt.Sprintf("{{ define %q -}}\n%s\n{{- end }}\n", name, strings.TrimSpace(body))
}

// lookup is a template that turns a field's name into its default, or into nothing.
func lookup(defaults []fieldDefault) string {
	var pairs strings.Builder
	for _, d := range defaults {
		fmt.Fprintf(&pairs, " %q %q", d.field, "`"+d.value+"`")
	}
	return "{{ get (dict" + pairs.String() + ") . }}"
}

// anchor is the name that Markdown's readers give a heading.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		}
	}
	return b.String()
}
