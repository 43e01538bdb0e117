// Package image makes container images without a registry or a container builder: one static Go binary, a numeric
// user, and a tarball that `ctr images import` and `docker load` read. The same binary gives the same bytes.
//
// It refuses to be a general builder: no base image, no second file, no root user.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	// User is the numeric user every image runs as. Numeric, because the kubelet cannot verify runAsNonRoot for a name.
	User = "65532:65532"

	userID    = 65532
	setuidBit = 0o4000
)

// epoch is the time of everything in an image, so that two builds are equal byte for byte.
var epoch = time.Unix(0, 0).UTC()

// Spec says what an image holds.
type Spec struct {
	// Reference names the image with its tag, for instance "omnia.local/pause:1". Give a registry that does not
	// resolve and a tag other than latest, so that no node ever tries to pull it.
	Reference string
	// Aliases are further names of the same image.
	Aliases []string
	// Binary is the static executable on this machine. It is the image's entrypoint, under its own base name at "/".
	Binary string
	// Args are the default arguments.
	Args []string
	// Env are the environment variables, as NAME=value.
	Env []string
	// Folders are empty folders that belong to the image's user, as absolute paths.
	Folders []string
	// Setuid makes the executable run as its owner, root, wherever that is let happen: for trying whether it is.
	Setuid bool
}

// Build makes the image in memory.
func Build(spec Spec) (v1.Image, error) {
	layer, err := makeLayer(spec)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding the layer of %s: %w", spec.Reference, err)
	}
	config := &v1.ConfigFile{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Created:      v1.Time{Time: epoch},
		Config: v1.Config{
			Entrypoint: []string{entrypoint(spec.Binary)},
			Cmd:        spec.Args,
			Env:        spec.Env,
			User:       User,
			WorkingDir: "/",
		},
	}
	before, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the config of %s: %w", spec.Reference, err)
	}
	config.RootFS, config.History = before.RootFS, before.History
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return nil, fmt.Errorf("writing the config of %s: %w", spec.Reference, err)
	}
	return img, nil
}

// Write builds the image, writes it as a tarball to file, and gives its digest.
func Write(file string, spec Spec) (v1.Hash, error) {
	img, err := Build(spec)
	if err != nil {
		return v1.Hash{}, err
	}
	named := map[name.Reference]v1.Image{}
	for _, reference := range append([]string{spec.Reference}, spec.Aliases...) {
		tag, err := name.NewTag(reference, name.StrictValidation)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("image reference %q: %w (give registry/name:tag)", reference, err)
		}
		named[tag] = img
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return v1.Hash{}, err
	}
	if err := tarball.MultiRefWriteToFile(file, named); err != nil {
		return v1.Hash{}, fmt.Errorf("writing image tarball %s: %w", file, err)
	}
	return img.Digest()
}

// WritePackage compiles the Go main package pkg of the module in dir as a static binary and writes its image to file.
// The binary, and so the entrypoint, is named after the package's folder. It gives the image's digest.
func WritePackage(ctx context.Context, dir, pkg, file string, spec Spec) (v1.Hash, error) {
	tmp, err := os.MkdirTemp("", "image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	spec.Binary = filepath.Join(tmp, filepath.Base(filepath.Join(dir, pkg)))
	if err := Compile(ctx, dir, pkg, spec.Binary); err != nil {
		return v1.Hash{}, err
	}
	return Write(file, spec)
}

// Compile builds the Go main package pkg of the module in dir into the static executable out.
func Compile(ctx context.Context, dir, pkg, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// entrypoint is where the binary lies in the image.
func entrypoint(binary string) string { return "/" + filepath.Base(binary) }

// makeLayer makes the one layer: the executable, and the empty folders. Owners, times and modes are fixed, whatever they are on disk.
func makeLayer(spec Spec) (v1.Layer, error) {
	content, err := os.ReadFile(spec.Binary)
	if err != nil {
		return nil, fmt.Errorf("reading the binary of an image: %w", err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	mode := int64(0o755)
	if spec.Setuid {
		mode |= setuidBit
	}
	if err := w.WriteHeader(&tar.Header{Name: entrypoint(spec.Binary)[1:], Mode: mode, Size: int64(len(content)), ModTime: epoch, Format: tar.FormatPAX}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	for _, folder := range spec.Folders {
		if !path.IsAbs(folder) {
			return nil, fmt.Errorf("folder %q of an image: give an absolute path", folder)
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path.Clean(folder)[1:] + "/", Mode: 0o755, Uid: userID, Gid: userID, ModTime: epoch, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	})
}
