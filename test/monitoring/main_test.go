// Package monitoring holds what Prometheus and Grafana are given, manifests/components/alerts and components/dashboard, to
// what exists: Prometheus' own parser reads each expression, a real server and a real kube-apiserver tell each metric and
// each label in it, and Prometheus' own engine says of each alert when it fires. It holds the table of metrics in
// docs/operations.md to the same servers. It refuses to judge whether a threshold is a good one.
package monitoring

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	runtimeName = "agent"
	handle      = "shell/default"
)

func TestServers_TellWhatAlertsDashboardAndDocsSpeakOf(t *testing.T) {
	where, questions := expressions(t)
	answers := ask(t, questions)
	for i, got := range answers {
		require.Empty(t, got.Error, where[i])
	}
	c := framework.Get(t)
	servers := framework.StartServers(t, c, framework.ServerOptions{OwnCertificate: true})
	haveHistory(t, c)

	// Some of it is told a moment later: of what the controllers do, and of what is counted now and then.
	last := framework.Eventually(t, framework.BoundTimeout, "all that the manifests ask for is told", func(ctx context.Context) (observed, error) {
		k := told{}
		for _, path := range []string{serverPath, controllersPath} {
			if err := k.read(ctx, path, servers.List[0].Direct(c.Config), path); err != nil {
				return observed{}, err
			}
		}
		if err := k.read(ctx, hostAPIServer, c.Config, serverPath); err != nil {
			return observed{}, err
		}
		if err := k.addRare(); err != nil {
			return observed{}, err
		}
		return observed{Faults: faultsOf(k, where, answers), told: k}, nil
	}, func(o observed) bool { return len(o.Faults) == 0 })

	assert.Equal(t, documented(t), last.told.ours(), "the table of metrics in docs/operations.md has each metric with its labels, and no other")
	names := slices.Sorted(maps.Keys(scenarios))
	questions = nil
	for _, name := range names {
		questions = append(questions, question{Expr: up, Series: scenarios[name].all()})
	}
	for i, got := range ask(t, questions) {
		require.Empty(t, got.Error, names[i])
		for _, fault := range last.told.inventions(got.Series) {
			t.Errorf("the series with which %s is tried: %s", names[i], fault)
		}
	}
}

// observed is what was found in one look at the servers.
type observed struct {
	Faults []string
	told   told
}

func faultsOf(k told, where []string, answers []answer) (faults []string) {
	for i, got := range answers {
		for _, s := range got.Selectors {
			for _, fault := range k.faults(s) {
				faults = append(faults, where[i]+": "+fault)
			}
		}
	}
	return faults
}

// haveHistory lets a server do something of each kind that it counts: a sandbox that is acquired, touched and released, a
// call that does not wait, a refusal, and a claim that fails.
func haveHistory(t *testing.T, c *framework.Cluster) {
	t.Helper()
	namespace := c.Namespace(t)
	class := framework.MakeClass("told-" + namespace).OnFakeNodes()
	c.CreateClasses(t, class)
	claims := c.Agent(t, namespace, runtimeName, class.Cluster().Name).SandboxV1alpha1().SandboxClaims(namespace)

	hasty := framework.MakeAcquire(runtimeName, "hasty", handle)
	hasty.Spec.WaitSeconds = ptr.To[int32](0)
	_, err := claims.Acquire(t.Context(), v1alpha1.AnyClaim, hasty, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = claims.Acquire(t.Context(), v1alpha1.AnyClaim, framework.MakeAcquire(runtimeName, "s", "no-such/default"), metav1.CreateOptions{})
	require.Error(t, err)

	patient := framework.MakeAcquire(runtimeName, "patient", handle)
	got, err := claims.Acquire(t.Context(), v1alpha1.AnyClaim, patient, metav1.CreateOptions{})
	require.NoError(t, err)
	bound := c.Claim(t, namespace, got.Status.ClaimName, framework.Bound)
	// Bound already: whatever the machine did before, this call ends so.
	_, err = claims.Acquire(t.Context(), v1alpha1.AnyClaim, patient, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = claims.Touch(t.Context(), bound.Name, &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = claims.Release(t.Context(), bound.Name, &v1alpha1.SandboxRelease{}, metav1.CreateOptions{})
	require.NoError(t, err)

	c.Create(t, framework.MakeClaim("lost", namespace, runtimeName, "no-such-class").Obj())
	c.Claim(t, namespace, "lost", framework.Failed)
}

// documented are the metrics of the table in docs/operations.md, with their labels.
func documented(t *testing.T) map[string]sets.Set[string] {
	t.Helper()
	page, err := os.ReadFile(root + "docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| Metric | Counts |\n")
	require.True(t, found, "docs/operations.md has a table that begins with | Metric | Counts |")
	table, _, _ = strings.Cut(table, "\n\n")
	all := map[string]sets.Set[string]{}
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, named := range metric.FindAllStringSubmatch(cell, -1) {
			require.NotContains(t, slices.Collect(maps.Keys(all)), named[1], "it is there twice")
			all[named[1]] = sets.New[string]()
			if named[2] != "" {
				all[named[1]].Insert(strings.Split(named[2], ",")...)
			}
		}
	}
	return all
}

var metric = regexp.MustCompile("`(" + ownPrefix + `\w+)(?:\{([\w,]+)\})?` + "`")
