package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"text/template"
)

//go:embed config
var configFiles embed.FS

// render fills in one of the config templates. A value that the template names and data lacks is an error.
func render(name string, data any) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(configFiles, "config/"+name)
	if err != nil {
		return nil, fmt.Errorf("reading config template: %w", err)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, data); err != nil {
		return nil, fmt.Errorf("filling in config template: %w", err)
	}
	return buf.Bytes(), nil
}

// configDigest stands for all config templates, so that a cluster that was started with others is not taken for this one.
func configDigest() string {
	digest := sha256.New()
	// What is embedded can be read; if not, another digest at worst starts a cluster anew.
	_ = fs.WalkDir(configFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := configFiles.ReadFile(path)
		fmt.Fprintf(digest, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(digest.Sum(nil))
}

// runCommand runs a program to its end; its output is in the error.
func runCommand(name string, args ...string) error {
	_, err := commandOutput("", name, args...)
	return err
}

// commandOutput runs a program with something to read and gives back what it wrote.
func commandOutput(stdin string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
