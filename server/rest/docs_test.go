package rest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

var (
	// example is a command of the documentation, and the answer that it shows.
	example = regexp.MustCompile("(?s)```sh\n(curl .*?)```\n\n```json\n(.*?)```")
	word    = regexp.MustCompile(`(?s)'[^']*'|[^\s'\\]+`)
	token   = regexp.MustCompile(`"token":\s*"(\w+)"`)
)

// The commands of the documentation give the answers that it shows: with curl where
// there is one, else as the same requests.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/rest.md")
	require.NoError(t, err)
	examples := example.FindAllStringSubmatch(string(text), -1)
	if commands := strings.Count(string(text), "```sh\ncurl"); commands == 0 || commands != len(examples) {
		t.Fatalf("%d commands, %d with an answer", commands, len(examples))
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		curl = ""
	}
	url, lease := start(t), ""
	for _, e := range examples {
		command := strings.ReplaceAll(e[1], "http://127.0.0.1:8322", url)
		command = strings.ReplaceAll(command, "TOKEN", lease)
		var args []string
		for _, w := range word.FindAllString(command, -1) {
			args = append(args, strings.Trim(w, "'"))
		}
		var answer string
		if curl != "" {
			output, err := exec.CommandContext(t.Context(), curl, args[1:]...).Output()
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			answer = string(output)
		} else {
			answer = request(t, args[1:])
		}
		if match := token.FindStringSubmatch(answer); match != nil {
			lease = match[1]
		}
		var got, want any
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%s: %v: %s", command, err, answer)
		}
		if err := json.Unmarshal([]byte(e[2]), &want); err != nil {
			t.Fatalf("%v: %s", err, e[2])
		}
		if !shows(got, want) {
			t.Errorf("%s\ngives   %s\nand not %s", command, answer, e[2])
		}
	}
}

// request sends what curl would.
func request(t *testing.T, args []string) string {
	t.Helper()
	method, url, body := http.MethodGet, "", ""
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-s":
		case "-X", "-d", "-H":
			switch args[i] {
			case "-X":
				method = args[i+1]
			case "-d":
				body = args[i+1]
			}
			i++
		default:
			url = args[i]
		}
	}
	_, answer := do(t, method, url, body)
	return answer
}

// shows reports whether an answer has all that is shown of it.
func shows(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for key, value := range want {
			ok = ok && shows(object[key], value)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			ok = ok && shows(list[i], want[i])
		}
		return ok
	default:
		return got == want
	}
}
