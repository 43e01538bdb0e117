package framework

import (
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/rand"
)

// Servers are given ports from here: below those that Services and outgoing connections get, so that a server that is
// started again finds its port as it left it.
const (
	firstPort = 20000
	ports     = 10000
)

// portsGiven counts on from a random start, so that no two servers of one process are given the same port.
var portsGiven = func() *atomic.Int64 {
	start := &atomic.Int64{}
	start.Store(int64(rand.Intn(ports)))
	return start
}()

// freePort finds a port that nothing listens on.
func freePort(ip string) (int, error) {
	var last error
	for range ports {
		port := firstPort + int(portsGiven.Add(1)%ports)
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("finding a free port: %w", last)
}
