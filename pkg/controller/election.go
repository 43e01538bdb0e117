package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	// leaseName is the Lease of the replica that runs the controllers.
	leaseName = "sandbox-apiserver"

	// What Kubernetes' own components have.
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

// Election says how the replicas agree on who runs the controllers.
type Election struct {
	// Identity is what this replica calls itself in the Lease. No other may call itself so. A process that takes up the
	// identity of one that is gone takes up its Lease at once.
	Identity string
	// LeaseDuration is how long the others wait for a leader of whom nothing is heard.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader goes on that cannot renew the Lease. After it, it writes nothing.
	RenewDeadline time.Duration
	// RetryPeriod is how often the leader renews, and at least how long the others pause between looks at the Lease.
	RetryPeriod time.Duration
}

// DefaultElection is an election at Kubernetes' usual pace, of a replica that has no name yet.
func DefaultElection() Election {
	return Election{LeaseDuration: defaultLeaseDuration, RenewDeadline: defaultRenewDeadline, RetryPeriod: defaultRetryPeriod}
}

// AddFlags adds the election's flags.
func (e *Election) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.Identity, "lease-identity", e.Identity, "What this replica calls itself in the Lease, as no other does. Whoever starts under the name that holds the Lease takes it up at once, so that the pod's name and UID spare a leader's restarted container the wait for its own Lease to run out. (default the host's name and something random)")
	fs.DurationVar(&e.LeaseDuration, "leader-elect-lease-duration", e.LeaseDuration, "How long the other replicas wait for a leader of whom nothing is heard before one of them takes its place. Whole seconds.")
	fs.DurationVar(&e.RenewDeadline, "leader-elect-renew-deadline", e.RenewDeadline, "How long a leader goes on that cannot renew the Lease. Shorter than --leader-elect-lease-duration.")
	fs.DurationVar(&e.RetryPeriod, "leader-elect-retry-period", e.RetryPeriod, "How often the leader renews the Lease, and the least pause between two looks of the others at it.")
}

// Complete gives the replica a name of its own, if it has none.
func (e *Election) Complete() error {
	if e.Identity != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this replica after its host: %w (give it a name by --lease-identity)", err)
	}
	e.Identity = host + "_" + string(uuid.NewUUID())
	return nil
}

// Validate says what is wrong with the election.
func (e *Election) Validate() []error {
	var errs []error
	if strings.Contains(e.Identity, "$(") {
		errs = append(errs, fmt.Errorf("--lease-identity is %q: the container lacks the variables of its name, without which all replicas have the same; set them from the pod's fields", e.Identity))
	}
	if e.LeaseDuration%time.Second != 0 { // the Lease holds seconds: the others would wait less than the leader thinks
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration is %s: give whole seconds", e.LeaseDuration))
	}
	if e.LeaseDuration <= e.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration is %s: it must be longer than --leader-elect-renew-deadline, which is %s", e.LeaseDuration, e.RenewDeadline))
	}
	if least := time.Duration(leaderelection.JitterFactor * float64(e.RetryPeriod)); e.RenewDeadline <= least {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline is %s: it must be longer than %s, which is %.1f times --leader-elect-retry-period", e.RenewDeadline, least, leaderelection.JitterFactor))
	}
	if e.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period is %s: it must be positive", e.RetryPeriod))
	}
	return errs
}

// silence is after how long a replica that waits for its turn, and is not answered about the Lease, takes the host for gone.
// Its last look may be two pauses old.
func (e *Election) silence() time.Duration {
	longestPause := time.Duration((1 + leaderelection.JitterFactor) * float64(e.RetryPeriod))
	return e.RenewDeadline + longestPause
}

// candidate is this replica as it stands for election, term after term.
type candidate struct {
	Election
	namespace string
	leases    coordinationv1client.LeasesGetter
	// events tells people who leads. No term fences it: that one has ended is told after its end.
	events resourcelock.EventRecorder
}

// newCandidate makes the replica's own client of the Lease. What it returns to be called at the end stops its events.
func newCandidate(ctx context.Context, cfg Config) (*candidate, func(), error) {
	config := rest.AddUserAgent(rest.CopyConfig(cfg.Host), "leader-election")
	// One renewal that hangs leaves time for the next.
	config.Timeout = max(time.Second, cfg.Election.RenewDeadline/2)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making the Lease's transport: %w", err)
	}
	leases, err := coordinationv1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, nil, fmt.Errorf("making the Lease's client: %w", err)
	}
	core, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client of the Lease's events: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: leaseName}).WithLogger(klog.FromContext(ctx))
	return &candidate{Election: cfg.Election, namespace: cfg.Namespace, leases: leases, events: events}, broadcaster.Shutdown, nil
}

// lock is the Lease in one term's hands.
func (c *candidate) lock(t *term) *termLock {
	return &termLock{term: t, lasts: c.LeaseDuration, lease: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: leaseName},
		Client:     c.leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity, EventRecorder: c.events},
	}}
}
