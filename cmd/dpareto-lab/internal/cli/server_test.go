package cli

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

func TestBenchServerUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--workers 0":                            "workers is 0",
		"--workers 2 --connections 3":            "connections is 3",
		"--studies 0":                            "studies is 0",
		"--duration 0s":                          "duration is not positive",
		"--rate -1":                              "rate is -1",
		"--preload -1":                           "preload is -1",
		"--address 127.0.0.1:1 --preload 10":     "are for an own server",
		"--address 127.0.0.1:1 --profile a.prof": "are for an own server",
	} {
		_, stderr, code := invoke(t, append([]string{"bench", "server"}, strings.Fields(args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if stdout, _, code := invoke(t, "bench", "--help"); code != command.ExitOK || strings.Contains(stdout, hostName) {
		t.Errorf("exit code %d; the hidden command is shown:\n%s", code, stdout)
	}
}
