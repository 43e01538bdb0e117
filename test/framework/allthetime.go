package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"testing"
	"time"
)

// AllTheTime does something over and over, from several callers, until the function that it gives is called, which gives
// how often it was done and what went wrong. Nothing is tried a second time.
func AllTheTime(t testing.TB, callers int, do func(context.Context) error) (stop func() (count int, failures []string)) {
	t.Helper()
	ctx := t.Context()
	var mu sync.Mutex
	var done int
	var failed []string
	ended := make(chan struct{})
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				err := do(ctx)
				mu.Lock()
				done++
				if err != nil {
					failed = append(failed, time.Now().Format(time.StampMilli)+": "+err.Error())
				}
				mu.Unlock()
			}
		})
	}
	var once sync.Once
	end := func() {
		once.Do(func() { close(ended) })
		running.Wait()
	}
	t.Cleanup(end)
	return func() (int, []string) {
		end()
		return done, failed
	}
}

// Handshake opens a connection to a server as whoever trusts a caBundle does, and closes it.
func Handshake(ctx context.Context, address string, caBundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caBundle)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: ServerHost, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// ServedCertificate is the certificate that whoever listens there shows, trusted or not.
func ServedCertificate(ctx context.Context, address string) (*x509.Certificate, error) {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	state := connection.(*tls.Conn).ConnectionState()
	return state.PeerCertificates[0], connection.Close()
}
