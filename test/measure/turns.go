package measure

import (
	"context"
	"fmt"
	"time"
)

// Path is something that takes time. Take does it once and says how long it took, without what it prepares and clears
// away; turn tells the calls apart.
type Path struct {
	Name string
	Take func(ctx context.Context, turn int) (time.Duration, error)
}

// Timed makes a Path of what takes its whole time.
func Timed(name string, do func(ctx context.Context, turn int) error) Path {
	return Path{Name: name, Take: func(ctx context.Context, turn int) (time.Duration, error) {
		began := time.Now()
		err := do(ctx, turn)
		return time.Since(began), err
	}}
}

// InTurns measures paths one after the other, again and again, and gives each one's times. Machines differ more between
// runs, and between one minute and the next, than the paths do: so they take turns, each being first as often as the others. The
// first warmUp turns are left out.
func InTurns(ctx context.Context, warmUp, turns int, paths ...Path) ([]Times, error) {
	out := make([]Times, len(paths))
	for turn := range warmUp + turns {
		for i := range paths {
			at := (turn + i) % len(paths)
			took, err := paths[at].Take(ctx, turn)
			if err != nil {
				return out, fmt.Errorf("%s, turn %d: %w", paths[at].Name, turn, err)
			}
			if turn >= warmUp {
				out[at] = append(out[at], took)
			}
		}
	}
	return out, nil
}
