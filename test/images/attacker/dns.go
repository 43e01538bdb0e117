package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// domain ends the names that are asked for; a name begins with the attempt's token.
	domain = ".isolation.test."

	maxQuestion = 512
	answerTTL   = 1
)

// answered is what every name is said to stand for.
var answered = [4]byte{203, 0, 113, 10}

// tryDNS asks a resolver for a name that holds the token.
func tryDNS(ctx context.Context, args []string) (string, error) {
	if err := want(args, "udp|tcp", "host:port", "token"); err != nil {
		return "", err
	}
	network, server, token := args[0], args[1], args[2]
	if network != "udp" && network != "tcp" {
		return "", fmt.Errorf("%w: %s is neither udp nor tcp", errUnjudged, network)
	}
	question, err := dnsQuestion(token)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network+"4", server)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	for range datagrams {
		var answer []byte
		if answer, err = exchange(conn, network == "tcp", question); err == nil {
			return readAnswer(answer)
		}
		if network == "tcp" {
			break
		}
	}
	return "", err
}

func dnsQuestion(token string) ([]byte, error) {
	name, err := dnsmessage.NewName(token + domain)
	if err != nil {
		return nil, err
	}
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	return message.Pack()
}

// exchange sends a message and reads one. Over TCP each has its length before it.
func exchange(conn net.Conn, framed bool, message []byte) ([]byte, error) {
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	if framed {
		if err := writeFramed(conn, message); err != nil {
			return nil, err
		}
		return readFramed(conn)
	}
	if _, err := conn.Write(message); err != nil {
		return nil, err
	}
	answer := make([]byte, maxQuestion)
	n, err := conn.Read(answer)
	return answer[:n], err
}

func readAnswer(data []byte) (string, error) {
	var message dnsmessage.Message
	if err := message.Unpack(data); err != nil {
		return "", err
	}
	for _, resource := range message.Answers {
		if a, ok := resource.Body.(*dnsmessage.AResource); ok {
			return fmt.Sprintf("%s is %s", resource.Header.Name, net.IP(a.A[:])), nil
		}
	}
	return "", fmt.Errorf("no answer in %s", message.GoString())
}

// dnsAnswer answers a question, and gives the token of the name that was asked for.
func dnsAnswer(data []byte) (answer []byte, token string, err error) {
	var message dnsmessage.Message
	if err := message.Unpack(data); err != nil {
		return nil, "", err
	}
	if len(message.Questions) != 1 {
		return nil, "", errors.New("not one question")
	}
	name := message.Questions[0].Name
	token, found := strings.CutSuffix(name.String(), domain)
	if !found {
		return nil, "", fmt.Errorf("%s is none of ours", name)
	}
	message.Response, message.RecursionAvailable = true, true
	message.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: answerTTL},
		Body:   &dnsmessage.AResource{A: answered},
	}}
	answer, err = message.Pack()
	return answer, token, err
}

func writeFramed(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}

func readFramed(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint16(length[:])
	if size > maxQuestion {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	message := make([]byte, size)
	_, err := io.ReadFull(r, message)
	return message, err
}
