package cli

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

func TestBenchServerUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--workers 0":                            "--workers must be at least 1, is 0",
		"--workers 2 --connections 3":            "the number of workers, is 3",
		"--studies 0":                            "--studies must be 1 to 10000, is 0",
		"--duration 0s":                          "--duration must be positive, is 0s",
		"--rate -1":                              "--rate must be at least 0, is -1",
		"--preload -1":                           "--preload must be at least 0, is -1",
		"--address 127.0.0.1:1 --preload 10":     "cannot be used with --address",
		"--address 127.0.0.1:1 --profile a.prof": "cannot be used with --address",
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
