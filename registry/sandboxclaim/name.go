package sandboxclaim

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
)

const (
	nameInfix  = "-sbx-"
	nameDigits = 13 // of base32: 65 bits
)

var digits = base32.StdEncoding.WithPadding(base32.NoPadding)

// key is what a claim is found by: one handle, one claim.
type key struct{ runtime, session, handle string }

// ClaimName is the name of the claim of a key. It is a hash, so that etcd's own create decides who of many racing
// replicas makes the claim; the runtime's part is for people, and nobody parses it.
func ClaimName(runtime, session, handle string) string {
	sum := sha256.Sum256([]byte(runtime + "\x00" + session + "\x00" + handle))
	tail := nameInfix + strings.ToLower(digits.EncodeToString(sum[:]))[:nameDigits]

	head := strings.ReplaceAll(runtime, ".", "-")
	if head == "" || head[0] < 'a' || head[0] > 'z' {
		head = "r" + head // a DNS-1035 label begins with a letter, a runtime's name may begin with a digit
	}
	if most := validation.MaxClaimNameLength - len(tail); len(head) > most {
		head = head[:most]
	}
	return strings.TrimRight(head, "-") + tail
}

func (k key) claimName() string { return ClaimName(k.runtime, k.session, k.handle) }
