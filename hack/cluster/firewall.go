package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// firewallTable is our own nftables table; kube-proxy and kube-router have theirs.
const firewallTable = "omnia_cluster"

// firewallRules keep on this machine what goes to its uplinks from a pod or to an address of the cluster's.
func firewallRules(uplinks []string) ([]byte, error) {
	return render("firewall.nft", map[string]any{
		"Table":        firewallTable,
		"Uplinks":      uplinks,
		"Bridge":       bridge,
		"PodCIDR":      podCIDR,
		"FakePodCIDR":  fakePodCIDR,
		"ServiceCIDR":  serviceCIDR,
		"OutsideCIDRs": outsideCIDRs,
	})
}

// closeUplinks keeps every packet of a pod, and every packet to a cluster address, on this machine.
func (c *cluster) closeUplinks() error {
	rules, err := firewallRules(c.uplinks)
	if err != nil {
		return err
	}
	if _, err := commandOutput(string(rules), "nft", "--file", "-"); err != nil {
		return fmt.Errorf("closing the uplinks to pods: %w", err)
	}
	// A fake pod's address is nobody's: say so at once, instead of letting connections wait for an answer.
	return runCommand("ip", "route", "replace", "unreachable", fakePodCIDR)
}

// neededSysctls are what pod networking needs: forwarding, and policies for packets between pods on one bridge.
var neededSysctls = map[string]string{
	"net.ipv4.ip_forward":                 "1",
	"net.bridge.bridge-nf-call-iptables":  "1",
	"net.bridge.bridge-nf-call-ip6tables": "1",
}

// changedSysctls are what the cluster's programs change by themselves. They are put back by `down`.
var changedSysctls = []string{"kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys",
	"kernel.keys.root_maxbytes", "vm.overcommit_memory", "vm.panic_on_oom", "net.ipv4.conf.all.route_localnet"}

func sysctlFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// readSysctls remembers all settings that the cluster changes. One the kernel lacks is left out.
func readSysctls() map[string]string {
	values := map[string]string{}
	names := slices.AppendSeq(slices.Clone(changedSysctls), maps.Keys(neededSysctls))
	for _, name := range names {
		if data, err := os.ReadFile(sysctlFile(name)); err == nil {
			values[name] = strings.TrimSpace(string(data))
		}
	}
	return values
}

func writeSysctls(values map[string]string) error {
	for name, value := range values {
		if err := os.WriteFile(sysctlFile(name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting %s to %s: %w", name, value, err)
		}
	}
	return nil
}
