package apiserver

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o := NewOptions()
	flags := pflag.NewFlagSet("sandbox-apiserver", pflag.ContinueOnError)
	o.AddFlags(flags)
	require.NoError(t, flags.Parse(args))
	return o
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		says string // empty: valid
	}{
		"an etcd cluster: valid":                     {[]string{"--etcd-servers=https://etcd:2379"}, ""},
		"an embedded etcd: valid":                    {[]string{"--embedded-etcd-dir=/data"}, ""},
		"two storages":                               {[]string{"--etcd-servers=https://etcd:2379", "--embedded-etcd-dir=/data"}, "give one of the two"},
		"no etcd where one was meant":                {[]string{"--etcd-servers="}, "--etcd-servers is given and names none"},
		"a negative number of waiters":               {[]string{"--embedded-etcd-dir=/data", "--max-waiters=-1"}, "--max-waiters is -1"},
		"no quota":                                   {[]string{"--embedded-etcd-dir=/data", "--embedded-etcd-quota-bytes=0"}, "--embedded-etcd-quota-bytes is 0"},
		"no namespace of its own":                    {[]string{"--embedded-etcd-dir=/data", "--namespace="}, "--namespace is empty"},
		"a certificate that the server keeps: valid": {[]string{"--embedded-etcd-dir=/data", "--serving-cert-secret=cert"}, ""},
		"a certificate of two keepers":               {[]string{"--embedded-etcd-dir=/data", "--serving-cert-secret=cert", "--tls-cert-file=/tls.crt", "--tls-private-key-file=/tls.key"}, "give one of the two"},
		"a certificate for no Service":               {[]string{"--embedded-etcd-dir=/data", "--serving-cert-secret=cert", "--service-name="}, "--service-name is empty"},
		"resolvers of both kinds: valid":             {[]string{"--embedded-etcd-dir=/data", "--dns-peer=dns/app=resolver@5353", "--dns-peer=169.254.20.10/32"}, ""},
		"a resolver by its cluster IP":               {[]string{"--embedded-etcd-dir=/data", "--dns-peer=10.96.0.10"}, `DNS peer "10.96.0.10": write NAMESPACE/LABEL-SELECTOR`},
		"a quicker election: valid":                  {[]string{"--embedded-etcd-dir=/data", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"}, ""},
		"a Lease as short as its renewal may take":   {[]string{"--embedded-etcd-dir=/data", "--leader-elect-lease-duration=10s"}, "--leader-elect-lease-duration is 10s: it must be longer than --leader-elect-renew-deadline"},
		"a Lease of half seconds":                    {[]string{"--embedded-etcd-dir=/data", "--leader-elect-lease-duration=15500ms"}, "--leader-elect-lease-duration is 15.5s: give whole seconds"},
		"no time to renew a second time":             {[]string{"--embedded-etcd-dir=/data", "--leader-elect-retry-period=9s"}, "--leader-elect-renew-deadline is 10s: it must be longer than 10.8s"},
		"no pause between renewals":                  {[]string{"--embedded-etcd-dir=/data", "--leader-elect-retry-period=0s"}, "--leader-elect-retry-period is 0s: it must be positive"},
		"a name whose variables are not set":         {[]string{"--embedded-etcd-dir=/data", "--lease-identity=$(POD_NAME)_$(POD_UID)"}, "the container lacks the variables of its name"},
		"all that is wrong is said":                  {[]string{"--max-waiters=-1", "--embedded-etcd-quota-bytes=0"}, "--embedded-etcd-quota-bytes is 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := parsed(t, tt.args...)
			require.NoError(t, o.Complete())
			err := o.Validate()
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.says)
		})
	}
}

func TestCompleteReachesTheHostOnce(t *testing.T) {
	o := parsed(t, "--embedded-etcd-dir=/data", "--kubeconfig=/host", "--authorization-kubeconfig=/other")
	require.NoError(t, o.Complete())
	assert.Equal(t, "/host", o.Generic.Authentication.RemoteKubeConfigFile)
	assert.Equal(t, "/other", o.Generic.Authorization.RemoteKubeConfigFile, "what was given stands")
}

func TestCompleteEmbedsEtcdWhereNoOtherIsNamed(t *testing.T) {
	o := parsed(t)
	require.NoError(t, o.Complete())
	assert.Equal(t, DefaultEmbeddedEtcdDir, o.EmbeddedEtcdDir)
	o = parsed(t, "--etcd-servers=https://etcd:2379")
	require.NoError(t, o.Complete())
	assert.False(t, o.embedded())
}

func TestCompleteNamesTheReplica(t *testing.T) {
	o, other := parsed(t), parsed(t)
	require.NoError(t, o.Complete())
	require.NoError(t, other.Complete())
	assert.NotEqual(t, o.Election.Identity, other.Election.Identity, "two on one host are two")
	o = parsed(t, "--lease-identity=pod_uid")
	require.NoError(t, o.Complete())
	assert.Equal(t, "pod_uid", o.Election.Identity)
}

func TestCompleteServesFromTheCertDirectoryWhatTheServerKeeps(t *testing.T) {
	o := parsed(t, "--serving-cert-secret=cert", "--cert-dir=/certs")
	require.NoError(t, o.Complete())
	assert.Equal(t, "/certs/tls.crt", o.Generic.SecureServing.ServerCert.CertKey.CertFile)
	assert.Equal(t, "/certs/tls.key", o.Generic.SecureServing.ServerCert.CertKey.KeyFile)
}

func TestStoreIsAcceptedOnlyWhenToldSo(t *testing.T) {
	assert.False(t, parsed(t).Store.AcceptNew)
	assert.True(t, parsed(t, "--accept-new-store").Store.AcceptNew)
}

func TestNoProtobufIsOffered(t *testing.T) {
	for _, info := range (withoutProtobuf{Codecs}).SupportedMediaTypes() {
		assert.NotContains(t, info.MediaType, "protobuf", "the namespace controller would ask for it, and be refused")
	}
}
