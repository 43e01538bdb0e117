// Package report is what the attacker says, in the words that its program and the tests that read them share: what became
// of an attempt, what a process is like from within, what was heard outside. It refuses to judge any of it.
package report

import "time"

// Verdict is what became of one attempt.
type Verdict struct {
	// Attempt is the attempt's name and arguments.
	Attempt string `json:"attempt"`
	// Succeeded says that the attacker got what it tried for.
	Succeeded bool `json:"succeeded"`
	// Said is what it got, or what stopped it.
	Said string `json:"said"`
}

// About is what a process that serves was started with.
type About struct {
	// Args are the arguments, without the program.
	Args []string `json:"args"`
	// Env are the environment variables.
	Env map[string]string `json:"env"`
	// Address is where this answer was asked for: the pod's own, also if a Service was dialled.
	Address string `json:"address"`
}

// Packet is what an attempt sends. Pods are masqueraded, so the sender's address does not tell who it was.
type Packet struct {
	// Token is the attempt's own.
	Token string `json:"token"`
	// Host is the sender's host name, which is its pod's; only in a series.
	Host string `json:"host,omitempty"`
	// Number counts a series' packets from 0.
	Number int `json:"number,omitempty"`
	// Started is when the sending process started; only in a series.
	Started time.Time `json:"started,omitzero"`
}

// The ways by which something can be heard.
const (
	ByTCP  = "tcp"  // a connection; without a token until a request told one
	ByHTTP = "http" // a request
	ByUDP  = "udp"
	ByICMP = "icmp"
	ByDNS  = "dns"
)

// Heard is something that arrived outside.
type Heard struct {
	// At is when it arrived.
	At time.Time `json:"at"`
	// By is the way.
	By string `json:"by"`
	// On is the address at which it arrived.
	On string `json:"on"`

	Packet
}
