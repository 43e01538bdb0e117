package lifecycle

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(d)} }

func TestLongWordsAreClipped(t *testing.T) {
	got := Stand(Observed{Rejected: strings.Repeat("é", 1<<16)})
	assert.Less(t, len(got.Message), 4096, "a condition holds 32 KiB at most, or its write is refused for ever")
	assert.True(t, utf8.ValidString(got.Message))
}
