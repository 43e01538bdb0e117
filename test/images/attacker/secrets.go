package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
)

const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// tryToken reads the ServiceAccount's token.
func tryToken(context.Context, []string) (string, error) {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return "", err
	}
	if len(token) == 0 {
		return "", errors.New("it is empty")
	}
	return "a token", nil
}

// serviceVariable matches what the kubelet sets of Services, among them kube-apiserver's.
var serviceVariable = regexp.MustCompile(`^(KUBERNETES_.*|.*_SERVICE_(HOST|PORT)(_.*)?|.*_PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)=.+`)

// tryEnv looks for variables that tell of Services.
func tryEnv(context.Context, []string) (string, error) { return servicesIn(os.Environ()) }

func servicesIn(environment []string) (string, error) {
	var told []string
	for _, variable := range environment {
		if serviceVariable.MatchString(variable) {
			told = append(told, variable)
		}
	}
	if len(told) == 0 {
		return "", errors.New("no variable tells of a Service")
	}
	slices.Sort(told)
	return strings.Join(told, " "), nil
}
