// Package servingcert keeps the server's own serving certificate where nothing else in the cluster does: one Secret for
// all replicas, issued and renewed there by open-policy-agent/cert-controller; the APIService's caBundle, which always
// holds the CA before a certificate of it is served (bundle.go); and the files that the server reloads (files.go).
//
// Nothing breaks while any of it changes: a new CA stands beside its predecessor in the caBundle, and each replica goes
// on serving the old certificate until the aggregator has had time to learn of the new CA.
//
// It refuses to run beside another issuer: with cert-manager, or files of an administrator's own, it is not started.
package servingcert
