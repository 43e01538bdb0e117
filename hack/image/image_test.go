package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func writeBinary(t *testing.T, mode os.FileMode, modified time.Time) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(file, []byte("not really a program"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, modified, modified); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWriteSameBinaryDifferentTimes_SameTarball(t *testing.T) {
	var tarballs [2][]byte
	for i, modified := range []time.Time{time.Unix(1, 0), time.Unix(1_000_000, 0)} {
		out := filepath.Join(t.TempDir(), "image.tar")
		binary := writeBinary(t, os.FileMode(0o700+0o055*i), modified)
		if _, err := Write(out, Spec{Reference: "omnia.local/server:1", Binary: binary}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		tarballs[i] = content
	}
	if !bytes.Equal(tarballs[0], tarballs[1]) {
		t.Error("two builds of the same binary differ")
	}
}

func TestWritePackage_SameSourceInAnotherFolder_SameDigest(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const program = "hack/pause"
	elsewhere := t.TempDir()
	if err := os.CopyFS(filepath.Join(elsewhere, program), os.DirFS(filepath.Join(root, program))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(elsewhere, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var digests []string
	for _, dir := range []string{root, elsewhere} {
		digest, err := WritePackage(t.Context(), dir, "./"+program, filepath.Join(t.TempDir(), "image.tar"), Spec{Reference: "omnia.local/pause:1"})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the same source gave %s and %s", digests[0], digests[1])
	}
}

func TestBuild_NumericUserAndEntrypoint(t *testing.T) {
	binary := writeBinary(t, 0o755, time.Now())
	img, err := Build(Spec{Reference: "omnia.local/server:1", Binary: binary, Args: []string{"--x"}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Config.User != "65532:65532" {
		t.Errorf("user = %q", file.Config.User)
	}
	if len(file.Config.Entrypoint) != 1 || file.Config.Entrypoint[0] != "/server" {
		t.Errorf("entrypoint = %q", file.Config.Entrypoint)
	}
	if len(file.RootFS.DiffIDs) != 1 {
		t.Errorf("layers = %d, want 1", len(file.RootFS.DiffIDs))
	}
}

func TestBuild_FoldersOfTheUser_AndASetuidBinary(t *testing.T) {
	binary := writeBinary(t, 0o755, time.Now())
	for name, tt := range map[string]struct {
		spec Spec
		want []string
	}{
		"plain":                 {Spec{}, []string{"server 755 0"}},
		"folders":               {Spec{Folders: []string{"/data", "/var/cache/"}}, []string{"server 755 0", "data/ 755 65532", "var/cache/ 755 65532"}},
		"setuid, which is rare": {Spec{Setuid: true}, []string{"server 4755 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.spec.Reference, tt.spec.Binary = "omnia.local/server:1", binary
			if got := entries(t, tt.spec); !slices.Equal(got, tt.want) {
				t.Errorf("entries = %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := Build(Spec{Binary: binary, Folders: []string{"data"}}); err == nil {
		t.Error("a relative folder was accepted")
	}
}

// entries are the files of an image's only layer: name, mode and owner.
func entries(t *testing.T, spec Spec) []string {
	t.Helper()
	img, err := Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d", header.Name, header.Mode, header.Uid))
	}
}

func TestWriteReferenceWithoutTag_Refused(t *testing.T) {
	binary := writeBinary(t, 0o755, time.Now())
	if _, err := Write(filepath.Join(t.TempDir(), "x.tar"), Spec{Reference: "server", Binary: binary}); err == nil {
		t.Error("a reference without registry and tag was accepted")
	}
}
