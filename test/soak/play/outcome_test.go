package play

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/test/report"
	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

func ran(t *testing.T) *Soak {
	t.Helper()
	drawn, err := plan.New(1, time.Hour, servers)
	require.NoError(t, err)
	return &Soak{plan: drawn, during: time.Hour}
}

func targets(sections []report.Section) report.Targets {
	return (&report.Run{Sections: sections}).Targets()
}

func TestSections_AFailedSession_IsMissedAndQuoted(t *testing.T) {
	s := ran(t)
	s.ended(nil)
	s.waited(time.Second)
	assert.Empty(t, targets(s.sections(nil)).Missed)
	s.ended(errors.New("session-7: it was lost"))
	missed := targets(s.sections(nil)).Missed
	require.Len(t, missed, 1)
	assert.Equal(t, "sessions", missed[0].What)
	assert.Contains(t, missed[0].Note, "session-7: it was lost")
}

func TestSections_FaultsAreCountedByKind(t *testing.T) {
	s := ran(t)
	for _, kind := range []plan.Kind{plan.Killed, plan.Killed, plan.LeaseTaken} {
		s.record.Faults = append(s.record.Faults, flat.Fault{Kind: string(kind)})
	}
	counts := map[string]float64{}
	for _, row := range s.sections(nil)[0].Rows {
		counts[row.What] = row.Value
	}
	assert.InDelta(t, 0, counts[string(plan.Terminated)], 0)
	assert.InDelta(t, 2, counts[string(plan.Killed)], 0)
	assert.InDelta(t, 1, counts[string(plan.LeaseTaken)], 0)
}

func TestSections_WithoutAnEnd_ItIsSaid(t *testing.T) {
	assert.NotEmpty(t, ran(t).sections(nil)[1].NotMeasured)
	assert.Empty(t, ran(t).sections([]report.Row{{What: "left"}})[1].NotMeasured)
}

func TestQuoted(t *testing.T) {
	var failures []string
	for i := range failuresTold + 3 {
		failures = append(failures, fmt.Sprintf("session-%d", i))
	}
	assert.Equal(t, "session-0; session-1", quoted(failures[:2]))
	assert.True(t, strings.HasSuffix(quoted(failures), "session-9; and 3 more"), quoted(failures))
}

func TestNames(t *testing.T) {
	got, err := names(&corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"v1.Pod a", "v1.Pod b"}, got)
	got, err = names(&appsv1.DeploymentList{})
	require.NoError(t, err)
	assert.Empty(t, got)
}
