// Package apiserver is the server: flags to options (options.go), options to configuration (config.go), configuration to
// a server of the sandbox.omnia group (server.go), and the running of it with its embedded etcd and its controllers
// (run.go). It wires, and refuses to hold a rule: those are the registry's and pkg/lifecycle's.
package apiserver
