package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostRead is how much of a file is read at most: an answer travels in one message.
const mostRead = 1 << 20

// folder is the working folder. It cannot be left: not by .., not by an absolute path, not by a symbolic link.
type folder struct{ root *os.Root }

func openFolder(name string) (*folder, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &folder{root: root}, nil
}

// Close ends the use of the folder.
func (f *folder) Close() error { return f.root.Close() }

func (f *folder) path() string { return f.root.Name() }

// within gives a path relative to the folder. Links are left to os.Root, which follows none out of it.
func (f *folder) within(name string) (string, error) {
	local := name
	if filepath.IsAbs(name) {
		var err error
		if local, err = filepath.Rel(f.path(), name); err != nil {
			return "", err
		}
	}
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%q is outside of the working folder %s", name, f.path())
	}
	return local, nil
}

func (f *folder) read(name string) (string, error) {
	name, err := f.within(name)
	if err != nil {
		return "", err
	}
	file, err := f.root.Open(name)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(file, mostRead+1))
	if len(data) > mostRead {
		err = errors.Join(err, fmt.Errorf("%s is larger than %d bytes", name, mostRead))
	}
	return string(data), errors.Join(err, file.Close())
}

func (f *folder) write(name, content string, grow bool) error {
	name, err := f.within(name)
	if err != nil {
		return err
	}
	mode := os.O_TRUNC
	if grow {
		mode = os.O_APPEND
	}
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|mode, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, content)
	return errors.Join(err, file.Close())
}

// list gives the names in a folder, one a line, a folder's with a slash.
func (f *folder) list(name string) (string, error) {
	name, err := f.within(name)
	if err != nil {
		return "", err
	}
	dir, err := f.root.Open(name)
	if err != nil {
		return "", err
	}
	entries, err := dir.ReadDir(-1)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		text := entry.Name() + "\n"
		if entry.IsDir() {
			text = entry.Name() + "/\n"
		}
		names = append(names, text)
	}
	slices.Sort(names)
	return strings.Join(names, ""), errors.Join(err, dir.Close())
}
