//go:build tools

// Package hack pins the code generators in go.mod. Nothing imports it.
package hack

import (
	_ "k8s.io/code-generator"
)
