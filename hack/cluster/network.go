package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// allowForwarding sets the kernel up for pod networking.
func allowForwarding() error {
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		if err := runCommand("modprobe", "br_netfilter"); err != nil {
			return fmt.Errorf("this kernel cannot filter between pods on a bridge: %w", err)
		}
	}
	return writeSysctls(neededSysctls)
}

// clearNetwork removes the pods' network namespaces, the bridge with its links, and all rules of the cluster and its tests.
func clearNetwork() error {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil //nolint:nilerr // The packages were never installed, so no cluster was here.
	}
	return errors.Join(clearNamespaces(), clearLinks(), clearOutside(), clearTables(), clearRules(), clearSets())
}

// clearNamespaces removes the network namespaces that CNI made. Their ends of the pods' links go with them.
func clearNamespaces() error {
	namespaces, err := filepath.Glob("/run/netns/cni-*")
	if err != nil {
		return err
	}
	for _, file := range namespaces {
		if err := syscall.Unmount(file, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmounting %s: %w", file, err)
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	_ = os.Remove("/run/netns") // Stays if it is in use or was never there.
	return nil
}

// clearLinks removes the bridge and what is still attached to it, our own interface, and the route to fake pods.
func clearLinks() error {
	attached, err := filepath.Glob("/sys/class/net/" + bridge + "/brif/*")
	if err != nil {
		return err
	}
	links := []string{bridge, dummyLink}
	for _, path := range attached {
		links = append(links, filepath.Base(path))
	}
	for _, link := range links {
		if _, err := net.InterfaceByName(link); err != nil {
			continue
		}
		// A link may vanish in between, with the namespace of its other end.
		if err := runCommand("ip", "link", "delete", link); err != nil && !strings.Contains(err.Error(), "Cannot find device") {
			return err
		}
	}
	routes, err := commandOutput("", "ip", "route", "show", "type", "unreachable", fakePodCIDR)
	if err != nil || strings.TrimSpace(routes) == "" {
		return err
	}
	return runCommand("ip", "route", "delete", "unreachable", fakePodCIDR)
}

// clearOutside removes the routing rule that a test that was killed has left. Its routes went with the test's namespace.
func clearOutside() error {
	rules, err := commandOutput("", "ip", "rule", "show")
	if err != nil {
		return err
	}
	priority := strconv.Itoa(info.OutsideTable)
	for range rulesOf(rules, priority) {
		if err := runCommand("ip", "rule", "delete", "priority", priority); err != nil {
			return err
		}
	}
	return nil
}

// rulesOf counts the rules of a priority in what `ip rule show` wrote.
func rulesOf(shown, priority string) int {
	count := 0
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, priority+":") {
			count++
		}
	}
	return count
}

// clearTables deletes the nftables tables that belong to the cluster as a whole.
func clearTables() error {
	tables, err := commandOutput("", "nft", "list", "tables")
	if err != nil {
		return err
	}
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line) // table <family> <name>
		if len(fields) == 3 && (fields[2] == "kube-proxy" || fields[2] == firewallTable) {
			if err := runCommand("nft", "delete", "table", fields[1], fields[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

// clusterChain matches iptables chains of Kubernetes, kube-router and the CNI plugins, in a line of iptables-save.
var clusterChain = regexp.MustCompile(`(^:| -[AjgN] |^-A )(KUBE-|CNI-)`)

// clusterComment matches rules in the built-in chains that kube-router adds without a chain of its own.
var clusterComment = regexp.MustCompile(`--comment "?(KUBE-ROUTER|kube-router|rule to explicitly ACCEPT traffic that comply)`)

// withoutClusterRules takes the cluster's chains and rules out of what iptables-save wrote.
func withoutClusterRules(saved string) string {
	var kept strings.Builder
	for line := range strings.Lines(saved) {
		if !clusterChain.MatchString(line) && !clusterComment.MatchString(line) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// clearRules takes the cluster's rules out of the iptables tables and drops tables that are empty then.
func clearRules() error {
	for _, family := range []struct{ iptables, nft string }{{"iptables", "ip"}, {"ip6tables", "ip6"}} {
		saved, err := commandOutput("", family.iptables+"-save")
		if err != nil {
			return err
		}
		kept := withoutClusterRules(saved)
		if kept == saved {
			continue
		}
		if _, err := commandOutput(kept, family.iptables+"-restore"); err != nil {
			return err
		}
		for _, table := range emptyTables(kept) {
			// With the older iptables there is no such table in nftables; then nothing needs to be dropped.
			_ = runCommand("nft", "delete", "table", family.nft, table)
		}
	}
	return nil
}

// emptyTables names the tables of iptables-save's output that hold no rule and no chain but accepting built-in ones.
func emptyTables(saved string) []string {
	var names []string
	table, empty := "", true
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table, empty = line[1:], true
		case strings.HasPrefix(line, ":"):
			empty = empty && strings.Contains(line, " ACCEPT ")
		case line == "COMMIT":
			if empty {
				names = append(names, table)
			}
		case line != "" && !strings.HasPrefix(line, "#"):
			empty = false
		}
	}
	return names
}

// clearSets destroys kube-router's address sets. Some hold others, so the first round may leave those.
func clearSets() error {
	var problem error
	for range 2 {
		problem = nil
		sets, err := commandOutput("", "ipset", "list", "-name")
		if err != nil {
			return err
		}
		for name := range strings.FieldsSeq(sets) {
			plain := strings.TrimPrefix(name, "inet6:")
			if strings.HasPrefix(plain, "KUBE-") || strings.HasPrefix(plain, "kube-router-") {
				problem = errors.Join(problem, runCommand("ipset", "destroy", name))
			}
		}
	}
	return problem
}
