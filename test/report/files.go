package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Tell prints the table to w and writes results.json, results.md and report.html into a folder, which it makes. One form that
// cannot be written keeps none of the others back.
func (r *Run) Tell(w io.Writer, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	errs := []error{r.WriteTable(w)}
	for _, form := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"results.json", r.WriteJSON},
		{"results.md", r.WriteMarkdown},
		{"report.html", r.WriteHTML},
	} {
		path := filepath.Join(dir, form.name)
		if err := writeFile(path, form.write); err != nil {
			errs = append(errs, fmt.Errorf("writing %s: %w", path, err))
			continue
		}
		fmt.Fprintln(w, "written:", path)
	}
	return errors.Join(errs...)
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
