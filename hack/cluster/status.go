package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// status tells which programs run and what state the nodes are in. Fake nodes are summed up.
func status(ctx context.Context, l layout, out io.Writer) error {
	have, err := info.Load(l.dir())
	if err != nil {
		if record, activeErr := readActive(); activeErr == nil && record.Root != "" && record.Root != l.root {
			return fmt.Errorf("no cluster of this clone; %s has one (up here would end it)", record.Root)
		}
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "PROGRAM\tPID\tSTATE")
	for _, name := range componentNames(have) {
		state, pid := "not running", "-"
		if p, ok := recorded(l, name); ok {
			pid = fmt.Sprint(p.PID)
			if p.alive() {
				state = "running"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, pid, state)
	}
	fmt.Fprintln(w, "\nNODE\tSTATE\tTAINTS")
	if err := printNodes(ctx, l, w); err != nil {
		fmt.Fprintf(w, "unknown: %v\n", err)
	}
	return w.Flush()
}

func printNodes(ctx context.Context, l layout, w io.Writer) error {
	client, err := adminClient(l)
	if err != nil {
		return err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	fake, fakeReady := 0, 0
	for i := range list.Items {
		node := &list.Items[i]
		ready := readyCondition(node)
		if node.Annotations[fakeNodeKey] != "" {
			fake++
			if ready {
				fakeReady++
			}
			continue
		}
		state := "NotReady"
		if ready {
			state = "Ready"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", node.Name, state, taints(node))
	}
	if fake > 0 {
		fmt.Fprintf(w, "%d fake nodes\t%d Ready\t%s\n", fake, fakeReady, fakeNodeKey)
	}
	return nil
}

func taints(node *corev1.Node) string {
	keys := make([]string, 0, len(node.Spec.Taints))
	for _, taint := range node.Spec.Taints {
		keys = append(keys, taint.Key)
	}
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, ",")
}
