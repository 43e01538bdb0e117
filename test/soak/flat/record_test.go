package flat

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// lived adds what a server's process told of a quantity in a role.
func (r *Record) lived(server, life int, leads bool, from, until time.Duration, quantity string, value func(time.Duration) float64) {
	for at := from; at <= until; at += every {
		r.Servers = append(r.Servers, Sample{At: at, Server: server, Life: life, Leads: leads, Values: map[string]float64{quantity: value(at)}})
	}
}

func constant(value float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return value }
}

func hour() *Record {
	return &Record{Full: 5 * time.Minute, Until: time.Hour, Settle: time.Minute}
}

func (r *Record) sectionOf(t *testing.T, quantity string) report.Section {
	t.Helper()
	for _, section := range r.Sections() {
		if section.Title == quantity {
			return section
		}
	}
	t.Fatalf("no section tells of %s", quantity)
	return report.Section{}
}

func (r *Record) missed(t *testing.T) []string {
	t.Helper()
	var broken []string
	for _, row := range (&report.Run{Sections: r.Sections()}).Targets().Missed {
		broken = append(broken, row.What)
	}
	return broken
}

func TestSections_AStepAtARestart_IsNoLeak(t *testing.T) {
	r := hour()
	r.lived(0, 1, false, 0, 30*time.Minute, Heap, constant(20))
	r.lived(0, 2, false, 31*time.Minute, time.Hour, Heap, constant(35))
	assert.Empty(t, r.missed(t))
	rows := r.sectionOf(t, Heap).Rows
	require.Len(t, rows, 2, "both lives are judged, each by itself")
	assert.Equal(t, "server 0, life 1, follows", rows[0].What)
	assert.Equal(t, "server 0, life 2, follows", rows[1].What)
}

func TestSections_AFollowerThatLeads_IsNoLeak(t *testing.T) {
	r := hour()
	r.lived(1, 1, false, 0, 28*time.Minute, Heap, constant(20))
	r.lived(1, 1, true, 28*time.Minute+every, time.Hour, Heap, constant(35))
	assert.Empty(t, r.missed(t))
	rows := r.sectionOf(t, Heap).Rows
	require.Len(t, rows, 1, "as a follower it was not there for long enough under full load")
	assert.Equal(t, "server 1, life 1, leads", rows[0].What)
}

func TestSections_ALeakOfALeaderThatComesAndGoes_IsFound(t *testing.T) {
	r := hour()
	grown := func(at time.Duration) float64 { return 35 * (1 + at.Minutes()/100) }
	for from := time.Duration(0); from < time.Hour; from += 20 * time.Minute {
		r.lived(2, 1, true, from, from+10*time.Minute, Heap, grown)
		r.lived(2, 1, false, from+10*time.Minute+every, from+20*time.Minute-every, Heap, constant(20))
	}
	assert.Equal(t, []string{"server 2, life 1, leads"}, r.missed(t), "what it held when it led before is what it is held against")
}

func TestSections_WhatIsNotJudged(t *testing.T) {
	r := hour()
	r.lived(0, 1, false, 0, 4*time.Minute, Goroutines, leak(0.5))               // the load is not full
	r.lived(0, 2, false, time.Hour+every, 2*time.Hour, Goroutines, leak(0.5))   // it has ended
	r.lived(1, 1, false, 10*time.Minute, 11*time.Minute, Goroutines, leak(100)) // it settles
	r.lived(2, 1, false, 20*time.Minute, 22*time.Minute, Goroutines, leak(100)) // it hardly lived after that
	section := r.sectionOf(t, Goroutines)
	assert.Empty(t, section.Rows)
	assert.Equal(t, "no stretch was 1m30s long, of which it can be judged: the run was too short, or nothing was read", section.NotMeasured)
	require.Len(t, section.Plots, 1, "it is shown nevertheless")
	assert.Len(t, section.Plots[0].Series, 3)
}

func TestSections_OfShortLivesTheWorstIsTold(t *testing.T) {
	r := hour()
	r.lived(0, 1, true, 0, time.Hour, Goroutines, constant(600))
	for life := 1; life <= 5; life++ {
		from := time.Duration(life) * 10 * time.Minute
		r.lived(1, life, false, from, from+6*time.Minute, Goroutines, constant(float64(500+life)))
	}
	leaky := func(at time.Duration) float64 { return 500 + 60*(at-40*time.Minute).Minutes() }
	r.lived(2, 1, false, 40*time.Minute, 49*time.Minute, Goroutines, leaky)
	rows := r.sectionOf(t, Goroutines).Rows
	require.Len(t, rows, 2)
	assert.Equal(t, "server 0, life 1, leads", rows[0].What)
	assert.Equal(t, "the worst of 6 shorter lives: server 2, life 1, follows", rows[1].What)
	assert.Equal(t, []string{rows[1].What}, r.missed(t))
}

func TestSections_WhatThereIsOnce(t *testing.T) {
	r := hour()
	for at := time.Duration(0); at <= time.Hour; at += every {
		r.Whole = append(r.Whole, Sample{At: at, Values: map[string]float64{InUse: leak(0.01)(at), Keys: 230}})
	}
	assert.Equal(t, []string{"over the whole run"}, r.missed(t))
	assert.Empty(t, r.sectionOf(t, Keys).NotMeasured)
	row := r.sectionOf(t, InUse).Rows[0]
	assert.InDelta(t, 114, *row.First, 0.5)
	assert.InDelta(t, 132.5, *row.Floor, 0.5)
	assert.InDelta(t, 151, row.Value, 0.5)
	assert.Equal(t, report.MiB, row.Unit)
}

func TestSections_PlotsShowEachServerAndFault(t *testing.T) {
	r := hour()
	r.lived(1, 1, false, 0, 10*time.Minute, Resident, constant(90))
	r.lived(0, 1, false, 0, 10*time.Minute, Resident, constant(91))
	r.Faults = []Fault{{3 * time.Minute, "killed"}, {5 * time.Minute, "ended"}, {9 * time.Minute, "killed"}}
	section := r.sectionOf(t, Resident)
	require.Len(t, section.Plots, 1)
	plot := section.Plots[0]
	assert.Equal(t, "server 0", plot.Series[0].Name)
	assert.Equal(t, "server 1", plot.Series[1].Name)
	assert.Len(t, plot.Series[0].X, 61)
	assert.InDelta(t, 10, plot.Series[0].X[60], 1e-9)
	assert.Equal(t, []report.Mark{{Name: "ended", X: []float64{5}}, {Name: "killed", X: []float64{3, 9}}}, plot.Marks)
	var page bytes.Buffer
	require.NoError(t, (&report.Run{Title: "Soak", Sections: r.Sections()}).WriteHTML(&page), "whatever was not read")
}

func TestQuantities(t *testing.T) {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, q := range Quantities() {
		assert.False(t, ids[q.id] || names[q.Name], "%s is told twice", q.Name)
		ids[q.id], names[q.Name] = true, true
		assert.NotEmpty(t, q.Why, q.Name)
		assert.Positive(t, q.Slack, q.Name)
		assert.Positive(t, q.Least, q.Name)
	}
}
