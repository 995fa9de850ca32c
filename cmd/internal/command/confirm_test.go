package command_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
)

// What cannot be undone needs the name on a terminal, and --yes elsewhere.
func TestConfirm(t *testing.T) {
	for name, tt := range map[string]struct {
		answer      string
		interactive bool
		want        string // in the error; "" for none
	}{
		"the name":     {"svt\n", true, ""},
		"another name": {"adult\n", true, `the answer was "adult"`},
		"yes":          {"yes\n", true, `the answer was "yes"`},
		"nothing":      {"\n", true, "nothing was deleted"},
		"no answer":    {"", true, "nothing was deleted"},
		"no terminal":  {"svt\n", false, "--yes: required to delete studies/svt"},
	} {
		var asked bytes.Buffer
		env := &command.Env{Stdin: strings.NewReader(tt.answer), Console: console.New(&asked), Interactive: tt.interactive}
		err := env.Confirm(t.Context(), "studies/svt", "svt")
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !command.IsUsage(err)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if strings.Contains(asked.String(), "Type svt to delete studies/svt") != tt.interactive {
			t.Errorf("%s: asked %q", name, asked.String())
		}
	}
}

// An interrupt ends the question.
func TestConfirmIsInterrupted(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := &command.Env{Stdin: in, Console: console.New(io.Discard), Interactive: true}
	if err := env.Confirm(ctx, "studies/svt", "svt"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
