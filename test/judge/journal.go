package judge

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Journal is what happened, for whoever looks for the cause of a failure. The zero value is empty.
type Journal struct {
	mu    sync.Mutex
	lines []string
}

// Say adds a line, by a judge's clock and (seconds) the machine's.
func (j *Journal) Say(at time.Time, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%s (%s) %s", at.Format("15:04:05.000"), time.Now().Format("05.000"), fmt.Sprintf(format, args...)))
}

// String is all of it.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}
