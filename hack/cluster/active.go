package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// active records, where every clone finds it, which clone's cluster this machine has.
type active struct {
	// Root is the clone's folder.
	Root string `json:"root"`
	// Sysctls are the kernel settings from before, to be put back.
	Sysctls map[string]string `json:"sysctls"`
}

func activeFile() string { return filepath.Join(machineDir, "active.json") }

// readActive gives the record, or an empty one if the machine has no cluster.
func readActive() (active, error) {
	var a active
	data, err := os.ReadFile(activeFile())
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("reading %s: %w (remove it and run down again)", activeFile(), err)
	}
	return a, nil
}

func (a active) write() error {
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(activeFile(), append(data, '\n'), 0o644)
}

// lock keeps a second launcher out until the first is done. The kernel frees it if the launcher dies.
func lock() (unlock func(), err error) {
	for {
		file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("another `hack/cluster` command is at work on this machine: wait for it (%s: %w)", lockFile, err)
		}
		if isCurrent(file) {
			return func() {
				_ = os.Remove(lockFile)
				_ = file.Close()
			}, nil
		}
		_ = file.Close() // Its last owner removed it after we had opened it.
	}
}

// isCurrent tells whether the open lock file is still the one that others would open.
func isCurrent(file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(lockFile)
	return err == nil && os.SameFile(mine, current)
}
