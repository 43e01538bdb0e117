package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// noSuchResource begins what client-go makes of a 404 that is no metav1.Status: the aggregator's, while the group is not served.
const noSuchResource = "the server could not find the requested resource"

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

// passing tells what may pass (a server or an aggregator that restarts, a full one, a broken connection) from a refusal.
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
