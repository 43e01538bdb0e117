package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const servers = 3

func draw(t *testing.T, seed uint64, during time.Duration) *Plan {
	t.Helper()
	p, err := New(seed, during, servers)
	require.NoError(t, err)
	return p
}

func TestNew_SameSeed_SamePlan(t *testing.T) {
	assert.Equal(t, draw(t, 7, time.Hour), draw(t, 7, time.Hour))
	other := draw(t, 8, time.Hour)
	assert.NotEqual(t, draw(t, 7, time.Hour).Sessions, other.Sessions)
	assert.NotEqual(t, draw(t, 7, time.Hour).Faults, other.Faults)
}

func TestNew_Sessions(t *testing.T) {
	const seeds = 20
	count, handles, left := 0, 0, 0
	for seed := range uint64(seeds) {
		names := map[string]bool{}
		for i, s := range draw(t, seed, time.Hour).Sessions {
			count, handles = count+1, handles+len(s.Asks)
			if s.Abandoned {
				left++
			}
			assert.False(t, names[s.Name], "%s comes twice", s.Name)
			names[s.Name] = true
			assert.Less(t, s.At, time.Hour)
			assert.LessOrEqual(t, len(s.Asks), MostHandles)
			assert.Zero(t, s.Asks[0], "the first is asked for at once")
			assert.Less(t, s.Touch+IdleTimeout/2, IdleTimeout*3/4, "session %d touches too seldom to be kept", i)
			assert.GreaterOrEqual(t, s.Hold, s.Touch, "session %d never touches", i)
		}
	}
	assert.InEpsilon(t, seeds*3600*sessionsPerSecond, count, 0.05)
	assert.InEpsilon(t, 2*count, handles, 0.05, "two sandboxes each, on average")
	assert.InEpsilon(t, float64(count)*abandoned/100, left, 0.1)
}

func TestNew_Faults(t *testing.T) {
	for during, atLeast := range map[time.Duration]int{time.Hour: 11, 10 * time.Minute: 2, Shortest: 2} {
		for seed := range uint64(50) {
			p := draw(t, seed, during)
			require.GreaterOrEqual(t, len(p.Faults), atLeast, "seed %d, %s", seed, during)
			before := time.Duration(0)
			for _, f := range p.Faults {
				rest := min(restFrom, during/6)
				assert.GreaterOrEqual(t, f.At-before, rest, "one after the other, with a rest between")
				assert.Less(t, f.At, during-rest, "and none at the end")
				before = f.At
				if f.Kind == LeaseTaken {
					continue
				}
				assert.NotEqual(t, p.Spared, f.Server, "seed %d ends the server that is spared", seed)
				assert.Less(t, f.Server, servers)
				assert.Less(t, f.Down, rest, "a server is back before the next fault")
			}
		}
	}
}

func TestNew_EachKindAndServerIsDrawn(t *testing.T) {
	kinds, ended, spared := map[Kind]int{}, map[int]int{}, map[int]int{}
	for seed := range uint64(50) {
		p := draw(t, seed, time.Hour)
		spared[p.Spared]++
		for _, f := range p.Faults {
			kinds[f.Kind]++
			if f.Kind != LeaseTaken {
				ended[f.Server]++
			}
		}
	}
	for _, kind := range Kinds() {
		assert.Greater(t, kinds[kind], 50, kind)
	}
	for i := range servers {
		assert.Greater(t, ended[i], 50, "server %d", i)
		assert.Greater(t, spared[i], 5, "server %d", i)
	}
}

func TestNew_Refusals(t *testing.T) {
	_, err := New(1, 59*time.Second, servers)
	require.ErrorContains(t, err, "a soak of 59s: give it 1m0s at least")
	_, err = New(1, 12*time.Hour, servers)
	require.ErrorContains(t, err, "a soak of 12h0m0s: give it 1m0s at least, and 11h0m0s at most")
	_, err = New(1, time.Hour, 1)
	require.ErrorContains(t, err, "a soak of 1 servers: one is always left, so give it 2 at least")
}
