package flat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const every = 10 * time.Second

// followed gives what a quantity was over a time.
func followed(from, during time.Duration, value func(at time.Duration) float64) []Point {
	var points []Point
	for at := from; at <= from+during; at += every {
		points = append(points, Point{at, value(at)})
	}
	return points
}

// leak grows by a share of what there was in the beginning, each minute.
func leak(perMinute float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 { return 100 * (1 + perMinute*at.Minutes()) }
}

// noisy is a quantity around 100 with so much noise, and a collector's teeth of the same size.
func noisy(share float64) func(time.Duration) float64 {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // it is to be the same again
	return func(at time.Duration) float64 {
		teeth := math.Mod(at.Minutes(), 3)/3 - 0.5
		return 100 * (1 + share*(random.Float64()-0.5) + share*teeth)
	}
}

func TestBound(t *testing.T) {
	const warm = 5 * time.Minute
	tests := map[string]struct {
		points []Point
		slack  float64
		broken bool
	}{
		"a leak of 1 % a minute, over an hour: found":                          {followed(warm, 55*time.Minute, leak(0.01)), 0, true},
		"a leak of 1 % a minute, in the shortest life: found":                  {followed(warm, lastingLife, leak(0.01)), 0, true},
		"a leak of 1 % a minute, in half an hour, with heap's slack: found":    {followed(warm, 30*time.Minute, leak(0.01)), 4, true},
		"a leak of 3 % a minute, in the shortest life, with RSS' slack: found": {followed(warm, lastingLife, leak(0.03)), 8, true},
		"a leak that stops after the warm-up: none":                            {followed(0, time.Hour, func(at time.Duration) float64 { return leak(0.02)(min(at, 20*time.Minute)) }), 0, false},
		"noise of a tenth, and teeth: none":                                    {followed(warm, lastingLife, noisy(0.1)), 0, false},
		"noise of a fifth over an hour: none":                                  {followed(warm, 55*time.Minute, noisy(0.2)), 0, false},
		"flat: none":                                                           {followed(warm, time.Hour, leak(0)), 0, false},
		"it falls: none":                                                       {followed(warm, time.Hour, leak(-0.005)), 0, false},
		"from 0 to within the slack: none":                                     {followed(0, time.Hour, func(at time.Duration) float64 { return math.Floor(at.Hours() * 1.5) }), 1, false},
		"from 0 to above the slack: found":                                     {followed(0, time.Hour, func(at time.Duration) float64 { return math.Floor(at.Hours() * 1.5) }), 0.5, true},
		"a few more of few, within the slack: none":                            {followed(0, 3*time.Minute, func(at time.Duration) float64 { return 5 + math.Floor(at.Minutes()) }), 3, false},
		"a few more of few, above the slack: found":                            {followed(0, 3*time.Minute, func(at time.Duration) float64 { return 5 + math.Floor(at.Minutes()) }), 0.5, true},
		"an outlier in each third: none": {followed(0, time.Hour, func(at time.Duration) float64 {
			if at%(7*time.Minute) == 0 {
				return 1000
			}
			return 100
		}), 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			thirds, enough := ThirdsOf(tt.points)
			require.True(t, enough)
			b := Bound{Slack: tt.slack}
			assert.Equal(t, tt.broken, b.excess(thirds) > 1, "%+v, at most %v", thirds, b.most(thirds))
			row := Quantity{Name: Heap, Bound: b}.row("it", thirds)
			within, known := row.Within()
			assert.True(t, known)
			assert.Equal(t, tt.broken, !within, "the row says the same: %+v", row)
		})
	}
}

func TestThirdsOf(t *testing.T) {
	_, enough := ThirdsOf(followed(0, 7*every, leak(0)))
	assert.False(t, enough, "eight points have no thirds")
	got, enough := ThirdsOf(followed(0, 8*every, func(at time.Duration) float64 { return at.Seconds() }))
	assert.True(t, enough)
	assert.Equal(t, Thirds{First: 10, Middle: 40, Last: 70, Apart: 30 * time.Second, Points: 9}, got)
	got, _ = ThirdsOf(followed(0, 10*every, func(at time.Duration) float64 { return at.Seconds() }))
	assert.Equal(t, Thirds{First: 10, Middle: 45, Last: 85, Apart: 40 * time.Second, Points: 11}, got, "a median of an even number lies between")
}
