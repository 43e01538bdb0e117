package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// machine is what the cluster must know about where it runs.
type machine struct {
	// nodeIP is the machine's own address.
	nodeIP string
	// uplinks are the interfaces that lead out of the machine.
	uplinks []string
}

// link is a network interface as far as choosing an address needs it.
type link struct {
	name     string
	hardware bool
	defaults bool // carries a default route
	addrs    []netip.Addr
}

// findMachine reads addresses and uplinks. A machine with loopback only gets an interface with an address of its own.
func findMachine() (machine, error) {
	links, err := readLinks()
	if err != nil {
		return machine{}, fmt.Errorf("reading network interfaces: %w", err)
	}
	m := choose(links)
	if m.nodeIP != "" {
		return m, nil
	}
	// A bridge without ports, because not every kernel has dummy interfaces and the cluster needs bridges anyway.
	if err := runCommand("ip", "link", "add", dummyLink, "type", "bridge"); err != nil {
		return machine{}, err
	}
	if err := runCommand("ip", "address", "add", ownNodeIP+"/32", "dev", dummyLink); err != nil {
		return machine{}, err
	}
	m.nodeIP = ownNodeIP
	return m, runCommand("ip", "link", "set", dummyLink, "up")
}

// choose picks the node's address: the default route's interface before other hardware before the rest.
func choose(links []link) machine {
	var m machine
	rank := func(l link) int {
		switch {
		case l.defaults:
			return 0
		case l.hardware:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(links, func(a, b link) int { return rank(a) - rank(b) })
	for _, l := range links {
		if l.defaults || l.hardware {
			m.uplinks = append(m.uplinks, l.name)
		}
		for _, addr := range l.addrs {
			if m.nodeIP == "" && addr.Is4() && addr.IsGlobalUnicast() {
				m.nodeIP = addr.String()
			}
		}
	}
	return m
}

// readLinks lists the interfaces that are up, without loopback and the cluster's own.
func readLinks() ([]link, error) {
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, err
	}
	defaults := defaultRoutes(string(routes))
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var links []link
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 || i.Flags&net.FlagUp == 0 || i.Name == bridge || i.Name == dummyLink {
			continue
		}
		_, err := os.Stat(filepath.Join("/sys/class/net", i.Name, "device"))
		l := link{name: i.Name, hardware: err == nil, defaults: slices.Contains(defaults, i.Name)}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				l.addrs = append(l.addrs, prefix.Addr())
			}
		}
		links = append(links, l)
	}
	return links, nil
}

// defaultRoutes names the interfaces with a default route in a /proc/net/route table.
func defaultRoutes(table string) []string {
	var names []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		const name, destination, mask = 0, 1, 7
		if len(fields) > mask && fields[destination] == "00000000" && fields[mask] == "00000000" {
			names = append(names, fields[name])
		}
	}
	return names
}

// checkPorts finds out early that another program has a port the cluster needs.
func checkPorts(nodeIP string) error {
	addresses := map[string][]int{
		"127.0.0.1": {etcdPort, etcdPeerPort, controllerManagerPort, schedulerPort, kubeletHealthPort,
			kubeProxyHealthPort, kubeProxyMetricsPort, kwokPort},
		nodeIP: {apiServerPort, kubeletPort},
	}
	for host, ports := range addresses {
		for _, port := range ports {
			listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("the cluster needs a port that is taken: %w (find its owner with `ss -ltnp`, end it)", err)
			}
			if err := listener.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}
