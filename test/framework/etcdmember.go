package framework

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// etcdAskTimeout bounds one question to a member.
const etcdAskTimeout = 5 * time.Second

// EtcdMember is one member of an EtcdCluster. It keeps its data and its addresses over a restart.
type EtcdMember struct {
	// Index counts the members from 0.
	Index int

	cluster        *EtcdCluster
	endpoint, peer string // URLs, for clients and for the other members
	program        string
	args           []string
	process        *process
}

func (m *EtcdMember) name() string { return "member-" + strconv.Itoa(m.Index) }

func (m *EtcdMember) dataDir() string { return m.cluster.file(m.name()) }

// LogFile is where the member's output is, over all its lives.
func (m *EtcdMember) LogFile() string { return m.cluster.file(m.name() + ".log") }

// Running says whether the member's process runs.
func (m *EtcdMember) Running() bool { return m.process != nil && !m.process.ended() }

// PID is the process' id; 0 if it does not run.
func (m *EtcdMember) PID() int {
	if !m.Running() {
		return 0
	}
	return m.process.pid()
}

// Kill ends the member at once, by SIGKILL, with whatever it was writing. One that does not run is no error.
func (m *EtcdMember) Kill() error { return m.signal(syscall.SIGKILL) }

// Stop ends the member in good order, by SIGTERM: a leader hands its lead over first.
func (m *EtcdMember) Stop() error { return m.signal(syscall.SIGTERM) }

func (m *EtcdMember) signal(sig syscall.Signal) error {
	if !m.Running() {
		return nil
	}
	if err := m.process.signal(sig, stopTimeout); err != nil {
		return fmt.Errorf("ending etcd's %s: %w (log: %s)", m.name(), err, m.LogFile())
	}
	return nil
}

// Start starts the member again, with its data, and waits until it answers, which takes a majority of members that run:
// EtcdCluster's Start brings back more than one. One that runs is waited for.
func (m *EtcdMember) Start(ctx context.Context) error {
	if err := m.launch(); err != nil {
		return err
	}
	return m.wait(ctx)
}

func (m *EtcdMember) launch() (err error) {
	if !m.Running() {
		m.process, err = spawn(m.LogFile(), m.program, m.args...)
	}
	return err
}

// wait waits until the member answers a read that takes a majority.
func (m *EtcdMember) wait(ctx context.Context) error {
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		if !m.Running() {
			return false, fmt.Errorf("the process ended: %w", m.process.why())
		}
		last = m.answers(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for etcd's %s: %w (last: %w)\nend of %s:\n%s", m.name(), err, last, m.LogFile(), tail(m.LogFile()))
	}
	return nil
}

func (m *EtcdMember) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, etcdAskTimeout)
	defer cancel()
	client, err := m.access().Client()
	if err != nil {
		return err
	}
	_, err = client.Get(ctx, "health")
	return errors.Join(err, client.Close())
}

// Leads says whether the member leads, as it sees it itself. One that does not run does not.
func (m *EtcdMember) Leads(ctx context.Context) (bool, error) {
	if !m.Running() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, etcdAskTimeout)
	defer cancel()
	client, err := m.access().Client()
	if err != nil {
		return false, err
	}
	status, err := client.Status(ctx, m.endpoint)
	if err != nil {
		return false, errors.Join(fmt.Errorf("asking etcd's %s: %w", m.name(), err), client.Close())
	}
	return status.Leader == status.Header.MemberId, client.Close()
}

// access leads to this member alone.
func (m *EtcdMember) access() EtcdAccess {
	a := m.cluster.Access()
	a.Endpoints = []string{m.endpoint}
	return a
}
