package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// group is a section of words: a block of constants with a comment of its own.
type group struct {
	title, text string
	words       []word
}

type word struct{ name, value, text string }

// others gathers what stands alone or in a block without a comment.
const others = "Other constants"

// readWords gives the package's constants that belong to none of its types, in the order of the source.
func readWords(dir string) ([]group, error) {
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s", dir)
	}
	pkg, err := doc.NewFromFiles(set, files, dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	var groups []group
	rest := group{title: others}
	slices.SortFunc(pkg.Consts, func(a, b *doc.Value) int { return cmp.Compare(a.Decl.Pos(), b.Decl.Pos()) })
	for _, block := range pkg.Consts {
		words, err := wordsOf(set, block)
		if err != nil {
			return nil, err
		}
		if !block.Decl.Lparen.IsValid() || block.Doc == "" {
			rest.words = append(rest.words, words...)
			continue
		}
		title, text := split(block.Doc)
		groups = append(groups, group{title: title, text: text, words: words})
	}
	return append(groups, rest), nil
}

func wordsOf(set *token.FileSet, block *doc.Value) ([]word, error) {
	alone := ""
	if !block.Decl.Lparen.IsValid() {
		alone = block.Doc
	}
	var words []word
	for _, spec := range block.Decl.Specs {
		constant, ok := spec.(*ast.ValueSpec)
		if !ok || len(constant.Names) != 1 || len(constant.Values) != 1 {
			return nil, fmt.Errorf("%s: a word is one name with one value", set.Position(spec.Pos()))
		}
		var value bytes.Buffer
		if err := printer.Fprint(&value, set, constant.Values[0]); err != nil {
			return nil, err
		}
		words = append(words, word{
			name: constant.Names[0].Name, value: strings.Trim(value.String(), `"`),
			text: cmp.Or(constant.Comment.Text(), constant.Doc.Text(), alone),
		})
	}
	return words, nil
}

// split takes a block's comment apart: what is up to its first full stop or colon is a heading.
func split(comment string) (title, rest string) {
	comment = strings.Join(strings.Fields(comment), " ")
	end := strings.IndexAny(comment, ".:")
	if end < 0 {
		return comment, ""
	}
	rest = strings.TrimSpace(comment[end+1:])
	if rest != "" {
		rest = strings.ToUpper(rest[:1]) + rest[1:]
	}
	return comment[:end], rest
}

func (g group) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", g.title)
	if g.text != "" {
		fmt.Fprintf(&b, "%s\n\n", g.text)
	}
	b.WriteString("| Value | Go constant | Meaning |\n| --- | --- | --- |\n")
	for _, w := range g.words {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", w.value, w.name, cell(w.text))
	}
	b.WriteString("\n")
	return b.String()
}

// cell is a comment as a table's cell holds it.
func cell(comment string) string {
	return strings.NewReplacer("<", "&lt;", "|", `\|`).Replace(strings.Join(strings.Fields(comment), " "))
}
