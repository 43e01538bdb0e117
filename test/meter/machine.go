package meter

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// Machine is what this process runs on. What the system does not tell is unknown: on anything but Linux that is most of it.
func Machine() []report.Fact {
	return []report.Fact{
		{Name: "CPUs", Value: cpus(runtime.NumCPU(), runtime.GOMAXPROCS(0))},
		{Name: "Processor", Value: known(entry("/proc/cpuinfo", "model name"))},
		{Name: "Memory", Value: known(inGiB(entry("/proc/meminfo", "MemTotal")))},
		{Name: "Kernel", Value: known(firstLine("/proc/sys/kernel/osrelease"))},
		{Name: "Go", Value: fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)},
	}
}

// cpus names the machine's CPUs and, where a container or the environment allows fewer, how many Go uses.
func cpus(all, used int) string {
	if used < all {
		return fmt.Sprintf("%d, of which %d may be used", all, used)
	}
	return strconv.Itoa(all)
}

// entry is the value of a "name : value" line; empty if there is none. Of several it is the first: all CPUs are alike.
func entry(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimSpace(line)
}

// inGiB turns what /proc tells in kB, which are KiB, into GiB.
func inGiB(told string) string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(told, " kB"), 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", kib/(1<<20))
}

func known(value string) string {
	if value == "" {
		return "unknown"
	}
	return value
}
