// Package printing turns objects into the tables that kubectl shows. It holds the mechanics alone and refuses to know a
// kind: each kind's columns stand beside its row in that kind's table.go.
package printing

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Table prints obj, an object or a list, with one row of cells an object.
func Table(obj, options runtime.Object, columns []metav1.TableColumnDefinition, cells func(runtime.Object) []any) (*metav1.Table, error) {
	table := &metav1.Table{}
	add := func(item runtime.Object) error {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells(item), Object: runtime.RawExtension{Object: item}})
		return nil
	}
	if meta.IsListType(obj) {
		if err := meta.EachListItem(obj, add); err != nil {
			return nil, fmt.Errorf("printing a list: %w", err)
		}
	} else if err := add(obj); err != nil {
		return nil, err
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue, table.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if item, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = item.GetResourceVersion()
	}
	if opt, ok := options.(*metav1.TableOptions); !ok || !opt.NoHeaders {
		table.ColumnDefinitions = columns
	}
	return table, nil
}

// Age prints how long ago t was, or <unknown>.
func Age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}
