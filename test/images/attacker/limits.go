package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	chunk = 1 << 20
	// burning is how long the share of the processor is measured: many of the kernel's periods of 100 ms.
	burning = 2 * time.Second
)

// tryWrite writes a small file in a folder.
func tryWrite(_ context.Context, args []string) (string, error) {
	if err := want(args, "folder"); err != nil {
		return "", err
	}
	file := filepath.Join(args[0], "attacker")
	if err := os.WriteFile(file, []byte("written"), 0o600); err != nil {
		return "", err
	}
	return "written", os.Remove(file)
}

// tryFill writes so many bytes into a folder, and leaves them there.
func tryFill(_ context.Context, args []string) (string, error) {
	if err := want(args, "folder", "bytes"); err != nil {
		return "", err
	}
	size, err := quantity(args[1])
	if err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(args[0], "filled"))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	data, written := make([]byte, chunk), int64(0)
	for i := range data {
		data[i] = byte(i) // No file system makes a hole of it.
	}
	for written < size {
		n, err := file.Write(data[:min(chunk, size-written)])
		written += int64(n)
		if err != nil {
			return "", fmt.Errorf("after %d bytes: %w", written, err)
		}
	}
	return fmt.Sprintf("%d bytes", written), file.Sync()
}

// tryAllocate uses so much memory in a process of its own, which is the one that is killed for it.
func tryAllocate(ctx context.Context, args []string) (string, error) {
	if err := want(args, "bytes"); err != nil {
		return "", err
	}
	output, err := exec.CommandContext(ctx, self, "allocate", args[0]).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return args[0] + " used", nil
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		return "", err
	}
	return "", fmt.Errorf("%w: %w: %s", errUnjudged, err, output)
}

// allocate uses memory: every page of it.
func allocate(_ context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: attacker allocate <bytes>")
	}
	size, err := quantity(args[0])
	if err != nil {
		return err
	}
	memory := make([]byte, size)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
	return nil
}

// tryCPU burns all processors, and gets it if that comes to more than so many of them.
func tryCPU(ctx context.Context, args []string) (string, error) {
	if err := want(args, "processors"); err != nil {
		return "", err
	}
	most, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	runtime.GOMAXPROCS(runtime.NumCPU()) // Go itself heeds the limit otherwise.
	ctx, cancel := context.WithTimeout(ctx, burning)
	defer cancel()
	began, before := time.Now(), used()
	for range runtime.NumCPU() - 1 {
		go burn(ctx)
	}
	burn(ctx)
	share := (used() - before).Seconds() / time.Since(began).Seconds()
	said := fmt.Sprintf("%.2f of %d processors", share, runtime.NumCPU())
	if share > most {
		return said, nil
	}
	return "", errors.New(said)
}

func burn(ctx context.Context) {
	for ctx.Err() == nil {
		for range 1 << 16 { // Nothing is to be done, and that at length.
		}
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func quantity(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", errUnjudged, text, err)
	}
	return q.Value(), nil
}
