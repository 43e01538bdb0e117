package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect opens an MCP session with a sandbox. It opens no standing stream: a sandbox has nothing to say unasked.
func connect(ctx context.Context, address string) (*mcp.ClientSession, error) {
	return mcp.NewClient(&mcp.Implementation{Name: "sample-agent", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", DisableStandaloneSSE: true}, nil)
}

// shell runs a command line in the sandbox and gives what it printed.
func shell(ctx context.Context, session *mcp.ClientSession, line string) (string, error) {
	return callTool(ctx, session, "shell", map[string]any{"command": line})
}

// callTool calls a tool and gives its structured answer, or its text.
func callTool(ctx context.Context, session *mcp.ClientSession, tool string, arguments map[string]any) (string, error) {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	if result.IsError {
		return "", errors.New(text.String())
	}
	if fields, ok := result.StructuredContent.(map[string]any); ok {
		if output, ok := fields["output"].(string); ok {
			return output, nil
		}
	}
	return text.String(), nil
}

func call(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("call", flag.ContinueOnError)
	address := flags.String("address", "", "host:port of the sandbox's MCP port")
	tool := flags.String("tool", "shell", "the tool to call")
	encoded := flags.String("args", "{}", "the tool's arguments, as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var arguments map[string]any
	if err := json.Unmarshal([]byte(*encoded), &arguments); err != nil {
		return fmt.Errorf("reading -args: %w", err)
	}
	if *address == "" {
		return errors.New("give -address, the host:port of the sandbox's MCP port")
	}
	session, err := connect(ctx, *address)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	answer, err := callTool(ctx, session, *tool, arguments)
	if err != nil {
		return err
	}
	fmt.Print(answer)
	return nil
}
