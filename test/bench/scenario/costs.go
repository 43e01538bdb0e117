package scenario

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// livesCounted is over how many lives their cost is shared out.
const livesCounted = 10

// costs counts what a claim's life, from acquire to all gone, asks of the cluster, beside that of its bare objects.
func (f *field) costs(ctx context.Context) (report.Section, error) {
	ours, floor := f.makers(f.place())
	spentBy := func(m maker) (spent, error) {
		return f.during(ctx, func() error {
			for i := range livesCounted {
				name := fmt.Sprintf("cost-%d", i)
				if err := m.make(ctx, name); err != nil {
					return err
				}
				if err := m.remove(ctx, name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	bare, err := spentBy(floor)
	if err != nil {
		return report.Section{}, err
	}
	claims, err := spentBy(ours)
	if err != nil {
		return report.Section{}, err
	}
	section := report.Section{ID: "costs", Title: "What a claim's life costs",
		About: fmt.Sprintf("From acquire to all gone, one life at a time, shared out over %d; the floor is the bare objects' life. Writes are counted by the servers' own metrics.", livesCounted)}
	section.Rows = append(section.Rows, writeRows("host API", claims[kubeAPIServer].HostWrites(), bare[kubeAPIServer].HostWrites())...)
	if own := claims[ourServer]; own != nil {
		section.Rows = append(section.Rows, writeRows("own etcd", own.EtcdWrites(), nil)...)
		section.Rows = append(section.Rows, writeRows("asked for by the controller", own.OwnWrites(), nil)...)
	}
	section.Rows = append(section.Rows, cpuRows(claims, bare)...)
	return section, nil
}

// writeRows tell writes, all and by what was written. Events, which are for people, are told apart.
func writeRows(where string, ours, floor []meter.Write) []report.Row {
	beside := map[string]int{}
	all := func(writes []meter.Write, events bool) (n int) {
		for _, w := range writes {
			if w.Event() == events {
				n += w.Count
			}
		}
		return n
	}
	for _, w := range floor {
		beside[w.String()] = w.Count
	}
	row := func(measure string, count, floorCount int) report.Row {
		out := report.Row{What: where, Measure: measure, Value: perLife(count)}
		if floor != nil {
			out.Floor, out.FloorName = ptr.To(perLife(floorCount)), "bare"
		}
		return out
	}
	rows := []report.Row{row("writes of a life, without Events", all(ours, false), all(floor, false)), row("Events of a life", all(ours, true), all(floor, true))}
	for _, w := range ours {
		if !w.Event() && 2*w.Count >= livesCounted { // what only some lives need tells nothing here
			rows = append(rows, row(w.String(), w.Count, beside[w.String()]))
		}
	}
	return rows
}

func perLife(count int) float64 { return float64(count) / livesCounted }

func cpuRows(ours, floor spent) []report.Row {
	var names []string
	for name := range ours {
		names = append(names, name)
	}
	slices.Sort(names)
	var rows []report.Row
	for _, name := range names {
		rows = append(rows, report.Row{What: name, Measure: "processor time of a life", Unit: report.Milliseconds, FloorName: "bare",
			Value: ours[name].CPU().Seconds() * 1000 / livesCounted, Floor: ptr.To(floor[name].CPU().Seconds() * 1000 / livesCounted)})
	}
	return rows
}
