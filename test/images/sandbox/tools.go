package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type shellInput struct {
	Command string `json:"command" jsonschema:"the command line to run"`
}

type shellOutput struct {
	Output   string `json:"output"`
	ExitCode int    `json:"exitCode"`
}

type pathInput struct {
	Path string `json:"path" jsonschema:"a path below the working folder"`
}

type listInput struct {
	Path string `json:"path,omitempty" jsonschema:"a folder below the working folder; by default that itself"`
}

type writeInput struct {
	Path    string `json:"path" jsonschema:"a path below the working folder"`
	Content string `json:"content" jsonschema:"the file's new content"`
}

type textOutput struct {
	Text string `json:"text"`
}

// addTools gives the server its tools: the shell, and files below the working folder.
func addTools(server *mcp.Server, sh *shell) {
	mcp.AddTool(server, &mcp.Tool{Name: "shell", Description: "Run a command line. Commands: " + strings.Join(commandNames(), ", ")},
		func(ctx context.Context, _ *mcp.CallToolRequest, in shellInput) (*mcp.CallToolResult, shellOutput, error) {
			output, code := sh.run(ctx, in.Command)
			return nil, shellOutput{Output: output, ExitCode: code}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "read_file", Description: "Read a file"},
		func(_ context.Context, _ *mcp.CallToolRequest, in pathInput) (*mcp.CallToolResult, textOutput, error) {
			text, err := sh.folder.read(in.Path)
			return nil, textOutput{Text: text}, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "write_file", Description: "Write a file"},
		func(_ context.Context, _ *mcp.CallToolRequest, in writeInput) (*mcp.CallToolResult, textOutput, error) {
			err := sh.folder.write(in.Path, in.Content, false)
			return nil, textOutput{Text: "written"}, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "list_dir", Description: "List a folder"},
		func(_ context.Context, _ *mcp.CallToolRequest, in listInput) (*mcp.CallToolResult, textOutput, error) {
			names, err := sh.folder.list(cmp.Or(in.Path, "."))
			return nil, textOutput{Text: names}, err
		})
}
