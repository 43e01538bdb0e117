package info

import (
	"strings"
	"testing"
)

func TestSaveThenLoad_Same(t *testing.T) {
	saved := &Cluster{Dir: t.TempDir(), NodeIP: "192.0.2.7", Server: "https://192.0.2.7:6443", RealNode: true, FakeNodes: 2}
	if err := saved.Save(); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(saved.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if *loaded != *saved {
		t.Errorf("loaded %+v, saved %+v", loaded, saved)
	}
}

func TestLoadNothing_SaysWhatToDo(t *testing.T) {
	_, err := Load(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "hack/cluster up") {
		t.Errorf("error = %v", err)
	}
}
