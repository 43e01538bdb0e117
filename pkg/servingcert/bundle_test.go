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
		beside   bool
		want     []byte
		alone    bool
	}{
		"nothing stands: the CA alone":                         {nil, true, current, true},
		"the CA stands: nothing to do":                         {current, true, current, true},
		"another stands: both, the CA first":                   {old, true, join(current, old), false},
		"both stand: both":                                     {join(current, old), true, join(current, old), false},
		"both stand and the time is over: the CA alone":        {join(current, old), false, current, true},
		"rotated twice within the time: all three":             {join(old, older), true, join(current, old, older), false},
		"an expired one stands: it goes":                       {expired.CertPEM, true, current, true},
		"what stands is no certificate: it goes":               {[]byte("caBundle"), true, current, true},
		"the order of what stands: the latest first, no twins": {join(old, current), true, join(current, old), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, alone, err := bundle(tt.standing, current, tt.beside, start)
			require.NoError(t, err)
			assert.Equal(t, string(tt.want), string(got))
			assert.Equal(t, tt.alone, alone)
		})
	}
}

func TestBundle_CANotReadable_Refused(t *testing.T) {
	_, _, err := bundle(nil, []byte("no certificate"), true, start)
	require.ErrorContains(t, err, "reading the CA")
}

func TestBundle_RotatedAgainAndAgain_Bounded(t *testing.T) {
	var standing []byte
	for range 2 * mostPredecessors {
		var err error
		standing, _, err = bundle(standing, newCA(t, start).CertPEM, true, start)
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
