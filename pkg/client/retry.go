package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// noSuchResource begins what client-go makes of a 404 that is no metav1.Status: the aggregator's, while the group is not served.
const noSuchResource = "the server could not find the requested resource"

// notYetReady ends what an admission plugin says that has not heard of the cluster's policies or webhooks yet.
const notYetReady = "not yet ready to handle request"

// authorizerRefuses is in what the authorization filter of an API server says, and nobody else: that the caller may not use
// one of the subresources at all. What is refused of a claim, a runtime or a limit says other words.
var authorizerRefuses = regexp.MustCompile(`cannot create resource "sandboxclaims/[a-z]+" in API group "` + regexp.QuoteMeta(v1alpha1.SchemeGroupVersion.Group) + `"`)

// doubtGrace is how long a refusal by the authorizer is asked again.
const doubtGrace = 5 * time.Second

// doubt is of a refusal by the authorizer: a kube-apiserver that has just started knows no roles for a moment, and refuses
// what it allows a second later. One that stands longer than doubtGrace is believed.
type doubt struct{ since time.Time }

// passing is passing of an answer that was heard now, with the doubt.
func (d *doubt) passing(err error, now time.Time) bool {
	if !byAuthorizer(err) {
		d.since = time.Time{}
		return passing(err)
	}
	if d.since.IsZero() {
		d.since = now
	}
	return now.Sub(d.since) < doubtGrace
}

// byAuthorizer says whether the authorizer refused, which says nothing of a claim.
func byAuthorizer(err error) bool {
	return apierrors.IsForbidden(err) && authorizerRefuses.MatchString(err.Error())
}

// callBackoff is the delay between calls that fail.
func callBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second}
}

// dialBackoff is the delay between dials of a port.
func dialBackoff() wait.Backoff {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 10, Cap: 500 * time.Millisecond}
}

// pauseAfter is how long to wait after a failed call: the delay's next step, or longer if the server says so.
func pauseAfter(err error, delay *wait.Backoff) time.Duration {
	pause := delay.Step()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, time.Duration(seconds)*time.Second)
	}
	return pause
}

// passing tells what may pass (a server or an aggregator that restarts, a full one, a broken connection, admission plugins
// that are not ready) from a refusal.
// Everything below 500 is a refusal by default, also when it comes from a proxy in between; every error of the way to the
// server may pass by default, since transports name theirs in too many ways to list.
func passing(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return !distrust(err)
	}
	status := answer.Status()
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return true
	case apierrors.IsNotFound(err):
		return unserved(&status)
	case apierrors.IsForbidden(err):
		return strings.HasSuffix(status.Message, notYetReady)
	}
	return status.Code >= http.StatusInternalServerError
}

// unserved tells the 404 of a group that is not served for a moment from that of an object: an object is named.
func unserved(status *metav1.Status) bool {
	return status.Details == nil || status.Details.Name == "" || strings.HasPrefix(status.Message, noSuchResource)
}

// distrust says whether one side does not trust the other's certificate, or the server does not speak TLS. Neither passes.
func distrust(err error) bool {
	var (
		unverified *tls.CertificateVerificationError
		refused    tls.AlertError
		notTLS     tls.RecordHeaderError
	)
	return errors.As(err, &unverified) || errors.As(err, &refused) || errors.As(err, &notTLS)
}

// sleep waits, or gives ctx's error if that ends first.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-c.Clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
