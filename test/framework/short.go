package framework

import (
	"flag"
	"testing"
)

// isShort says whether -short was given. A TestMain runs before the flags are parsed.
func isShort() bool {
	if !flag.Parsed() {
		flag.Parse()
	}
	return testing.Short()
}
