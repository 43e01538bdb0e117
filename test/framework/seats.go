package framework

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

var seatsLine = regexp.MustCompile(`(?m)^apiserver_flowcontrol_current_executing_seats\{.*priority_level="([^"]+)"\} (\d+)`)

// Seats is how many seats of kube-apiserver's Priority and Fairness are held, by priority level.
func (c *Cluster) Seats(ctx context.Context) (map[string]int, error) {
	metrics, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading kube-apiserver's metrics: %w", err)
	}
	seats := map[string]int{}
	for _, found := range seatsLine.FindAllSubmatch(metrics, -1) {
		held, err := strconv.Atoi(string(found[2]))
		if err != nil {
			return nil, fmt.Errorf("reading kube-apiserver's metrics: %w", err)
		}
		seats[string(found[1])] += held
	}
	return seats, nil
}
