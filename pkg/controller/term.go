package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
)

var (
	fencedWrites = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "sandbox_omnia", Name: "controller_fenced_writes_total",
		Help:           "Writes of the controllers that were not sent because this server does not hold the Lease, or not any longer, by cluster (host, or own: this server's own group).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"cluster"})
	termsEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "sandbox_omnia", Name: "controller_terms_ended_total",
		Help: "How often the controllers ended in this process, by cause: stopped (with the server), lease_lost (another holds it, or it was not renewed in time), " +
			"host_unreachable (while another led), or error. All but the first build them again.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"cause"})
)

func init() {
	legacyregistry.MustRegister(fencedWrites, termsEnded)
	// What has not happened yet is told as 0, so that its first time counts in a rate.
	for _, cluster := range []string{"host", "own"} {
		fencedWrites.WithLabelValues(cluster)
	}
	for _, cause := range []string{causeStopped, causeLeaseLost, causeHostUnreachable, causeError} {
		termsEnded.WithLabelValues(cause)
	}
}

// Why the controllers ended, as it is counted.
const (
	causeStopped         = "stopped"
	causeLeaseLost       = "lease_lost"
	causeHostUnreachable = "host_unreachable"
	causeError           = "error"
)

// Why a term ends, and why it does not write.
var (
	errNotHeld   = errors.New("this server does not hold the Lease")
	errReleased  = errors.New("this server has given up the Lease")
	errLeaseLost = errors.New("this server has lost the Lease")
	errHostGone  = errors.New("the host cluster does not answer about the Lease")
)

// term is the controllers' life between two buildings: they wait for the Lease, hold it, and lose it or give it up. It decides
// what they may write.
//
// Who holds a Lease knows so by what it wrote last. A process that was stopped, or a machine that slept, goes on where it
// was, and so believes that it holds what another has held for long. Therefore each write is asked for, just before it is
// sent, whether the last renewal is young enough that nobody else can have taken the Lease: the others wait for longer than
// the renew deadline, and count from later. What was sent before goes on, as what any crashed leader has sent does: each
// write is conditional on what was read, or may be made twice.
type term struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	clock     clock.Clock
	deadline  time.Duration // how long a renewal lets us write
	patience  time.Duration // how long the host may be silent while another leads
	watchOnce sync.Once

	mu       sync.Mutex
	why      error     // why the term is over; nil while it is not
	lastHeld time.Time // when the last renewal that was granted was sent; zero before the first
	lastWord time.Time // when the last request about the Lease that was answered was sent; zero before the first
}

func newTerm(ctx context.Context, election Election, c clock.Clock) *term {
	ctx, cancel := context.WithCancelCause(ctx)
	return &term{ctx: ctx, cancel: cancel, clock: c, deadline: election.RenewDeadline, patience: election.silence()}
}

// finish ends the term for this reason, if it has not ended before: nothing is sent from then on, and what is under way is
// called off.
func (t *term) finish(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finishLocked(why)
}

func (t *term) finishLocked(why error) {
	if t.why == nil {
		t.why = why
		t.cancel(why)
	}
}

// over says why the term has ended; nil if it has not.
func (t *term) over() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// renewed notes that the Lease is ours, by a request that was sent then.
func (t *term) renewed(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastHeld = sent
}

// heard notes that the host answered about the Lease.
func (t *term) heard(sent time.Time) {
	t.mu.Lock()
	t.lastWord = sent
	t.mu.Unlock()
	t.watchOnce.Do(func() { go t.watch() })
}

// heldBy notes that somebody else, or nobody, holds the Lease. If we did, the term is over: to take the Lease again would be
// to go on with what was known before another led.
func (t *term) heldBy(holder string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.lastHeld.IsZero() {
		t.finishLocked(fmt.Errorf("%w: it is held by %q", errLeaseLost, holder))
	}
}

// watch ends the term when the Lease was not renewed in time, or the host is gone while another leads. It matters for how
// soon the controllers are built again, and not for what they write.
func (t *term) watch() {
	for {
		timer := t.clock.NewTimer(t.check())
		select {
		case <-timer.C():
		case <-t.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// check ends the term if its time has come, and gives how long it is until then.
func (t *term) check() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checkLocked()
}

func (t *term) checkLocked() time.Duration {
	now := t.clock.Now()
	left, why := t.patience-elapsed(t.lastWord, now), errHostGone
	if !t.lastHeld.IsZero() {
		left, why = t.deadline-elapsed(t.lastHeld, now), errLeaseLost
	}
	if left <= 0 {
		t.finishLocked(why)
	}
	return max(left, 0)
}

// mayWrite says why nothing may be written now; nil if it may.
func (t *term) mayWrite() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil && t.lastHeld.IsZero() {
		return errNotHeld
	}
	if t.why == nil {
		t.checkLocked()
	}
	return t.why
}

// elapsed is how long ago something was, by the clock that tells more: the monotonic one stands still while a machine
// sleeps, the wall's may be set back.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// readingMethods change nothing.
var readingMethods = sets.New(http.MethodGet, http.MethodHead, http.MethodOptions)

// fence keeps a client from writing while the term does not hold the Lease, and from everything once it is over.
func (t *term) fence(config *rest.Config, cluster string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			refused := t.over()
			if !readingMethods.Has(r.Method) {
				if refused = t.mayWrite(); refused != nil {
					fencedWrites.WithLabelValues(cluster).Inc()
				}
			}
			if refused == nil {
				return next.RoundTrip(r)
			}
			if r.Body != nil {
				_ = r.Body.Close() // as whoever makes no use of it has to
			}
			return nil, refused
		})
	})
	return config
}
