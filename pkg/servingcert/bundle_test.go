package servingcert

import (
	"bytes"
	"testing"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// issuer issues as cert-controller does, which dates back by an hour.
func issuer() *rotator.CertRotator {
	return newRotator(Config{Namespace: "sandbox-system", Service: "sandbox-apiserver"})
}

func newCA(t *testing.T, at time.Time) *rotator.KeyPairArtifacts {
	t.Helper()
	ca, err := issuer().CreateCACert(at.Add(-time.Hour), at.Add(caLifetime))
	require.NoError(t, err)
	return ca
}

func newPair(t *testing.T, ca *rotator.KeyPairArtifacts, at time.Time) pair {
	t.Helper()
	cert, key, err := issuer().CreateCertPEM(ca, at.Add(-time.Hour), at.Add(servingLifetime))
	require.NoError(t, err)
	return pair{cert: cert, key: key}
}

func TestBundle(t *testing.T) {
	old, older, current := newCA(t, start.Add(-48*time.Hour)).CertPEM, newCA(t, start.Add(-96*time.Hour)).CertPEM, newCA(t, start).CertPEM
	expired, err := issuer().CreateCACert(start.Add(-3*time.Hour), start.Add(-time.Hour))
	require.NoError(t, err)
	join := func(cas ...[]byte) []byte { return bytes.Join(cas, nil) }
	tests := map[string]struct {
		standing []byte
		now      time.Time
		want     []byte
		left     time.Duration
	}{
		"nothing stands: the CA alone":                         {nil, start, current, 0},
		"the CA stands: nothing to do":                         {current, start, current, 0},
		"another stands: both, until the CA is old":            {old, start, join(current, old), time.Hour},
		"both stand: both":                                     {join(current, old), start.Add(59 * time.Minute), join(current, old), time.Minute},
		"both stand and the CA is an hour old: the CA alone":   {join(current, old), start.Add(time.Hour), current, 0},
		"rotated twice within the hour: all three":             {join(old, older), start, join(current, old, older), time.Hour},
		"an expired one stands: it goes":                       {expired.CertPEM, start, current, 0},
		"what stands is no certificate: it goes":               {[]byte("caBundle"), start, current, 0},
		"the order of what stands: the latest first, no twins": {join(old, current), start, join(current, old), time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, left, err := bundle(tt.standing, current, tt.now)
			require.NoError(t, err)
			assert.Equal(t, string(tt.want), string(got))
			assert.Equal(t, tt.left, left)
		})
	}
}

func TestBundle_CANotReadable_Refused(t *testing.T) {
	_, _, err := bundle(nil, []byte("no certificate"), start)
	require.ErrorContains(t, err, "reading the CA")
}

func TestBundle_RotatedAgainAndAgain_Bounded(t *testing.T) {
	var standing []byte
	for range 2 * mostPredecessors {
		var err error
		standing, _, err = bundle(standing, newCA(t, start).CertPEM, start)
		require.NoError(t, err)
	}
	assert.Equal(t, 1+mostPredecessors, bytes.Count(standing, []byte("BEGIN CERTIFICATE")))
}

func TestTrusted(t *testing.T) {
	ca, other := newCA(t, start), newCA(t, start)
	served := newPair(t, ca, start)
	assert.True(t, trusted(ca.CertPEM, served.cert, start))
	assert.True(t, trusted(append(bytes.Clone(other.CertPEM), ca.CertPEM...), served.cert, start))
	assert.False(t, trusted(other.CertPEM, served.cert, start), "another's CA")
	assert.False(t, trusted(ca.CertPEM, served.cert, start.Add(servingLifetime+time.Minute)), "expired")
	assert.False(t, trusted(ca.CertPEM, nil, start), "nothing served")
}
