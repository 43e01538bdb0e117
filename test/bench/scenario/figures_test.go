package scenario

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

func TestBeside(t *testing.T) {
	ours, floor := measure.Times{2 * time.Millisecond, 4 * time.Millisecond}, measure.Times{time.Millisecond, 2 * time.Millisecond}
	rows := beside("acquire", ours, theGet, floor, boundTargets)
	if len(rows) != 3 || rows[0].Measure != "p50" || rows[2].Measure != "p99" {
		t.Fatalf("rows: %+v", rows)
	}
	if rows[0].Value != 2 || *rows[0].Floor != 1 || rows[0].Target == nil || rows[1].Target != nil || rows[2].Value != 4 || rows[0].Samples != 2 {
		t.Errorf("rows: %+v", rows)
	}
	if rows := alone("acquire", ours); rows[0].Floor != nil || rows[0].FloorName != "" {
		t.Errorf("a floor from nowhere: %+v", rows[0])
	}
}

func TestDistribution_EndsWithAllCalls(t *testing.T) {
	plot := distribution("title", line{"a", measure.Times{3 * time.Millisecond, time.Millisecond}})
	series := plot.Series[0]
	if plot.Kind != report.Distribution || series.X[0] != 1 || series.X[1] != 3 || series.Y[0] != 0.5 || series.Y[1] != 1 {
		t.Errorf("plot: %+v", plot)
	}
}

func TestWriteRows_EventsApart(t *testing.T) {
	ours := []meter.Write{
		{Verb: "POST", Resource: "services", Count: livesCounted},
		{Verb: "POST", Resource: "events", Count: 2 * livesCounted},
		{Verb: "PUT", Resource: "configmaps", Count: 1},
	}
	rows := writeRows("host API", ours, []meter.Write{{Verb: "POST", Resource: "services", Count: livesCounted}})
	if len(rows) != 3 {
		t.Fatalf("rows: %+v", rows)
	}
	if all := rows[0]; all.Value != float64(livesCounted+1)/livesCounted || ptr.Deref(all.Floor, 0) != 1 {
		t.Errorf("writes: %+v", all)
	}
	if events := rows[1]; events.Value != 2 || ptr.Deref(events.Floor, 1) != 0 {
		t.Errorf("Events: %+v", events)
	}
	if rows[2].Measure != "POST services" {
		t.Errorf("what not every life needs is told: %+v", rows[2:])
	}
	if rows := writeRows("own etcd", ours, nil); rows[0].Floor != nil {
		t.Errorf("a floor from nowhere: %+v", rows[0])
	}
}

func TestCheck(t *testing.T) {
	if err := Check(IDs()); err != nil {
		t.Error(err)
	}
	if err := Check([]string{"bound", "bond"}); err == nil || !strings.Contains(err.Error(), `"bond"`) || !strings.Contains(err.Error(), "bound") {
		t.Errorf("got %v, want an error that names the scenario and those there are", err)
	}
}

func TestSizeSection_TheFirstIsTheFloorOfTheOthers(t *testing.T) {
	section := sizeSection([]atSize{{claims: 100, acquire: measure.Times{time.Millisecond}}, {claims: 1000, acquire: measure.Times{2 * time.Millisecond}}})
	first, second := section.Rows[0], section.Rows[1]
	if first.Floor != nil || first.Target != nil || ptr.Deref(second.Floor, 0) != 1 || second.Value != 2 || second.Target == nil {
		t.Errorf("rows: %+v %+v", first, second)
	}
}

func TestMemoryRows_WhatOneMoreClaimTakes(t *testing.T) {
	var section report.Section
	memoryRows([]atSize{{claims: 100, heap: 1 << 20, goroutines: 50}, {claims: 1100, heap: 11 << 20, goroutines: 50}}, &section)
	if heap := section.Rows[0]; heap.Value != 10.24 || heap.Unit != report.KiB {
		t.Errorf("heap: %+v", heap)
	}
	if goroutines := section.Rows[1]; goroutines.Value != 0 || goroutines.Target == nil {
		t.Errorf("goroutines: %+v", goroutines)
	}
}
