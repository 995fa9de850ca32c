package trial_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/internal/require"
)

// A configuration is queued as it was copied, whatever its categories are called.
func TestCreate(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	const hostile = " it's, \"a\"=b\n\u2028 "
	quoted, err := json.Marshal(hostile)
	require.NoError(t, err)
	study := strings.Replace(clitest.SmallStudy, "[a, b]", "["+string(quoted)+", b]", 1)
	clitest.Must(t, study, "study", "create", "-", "--server", address)
	configuration := `{"depth": 3, "rate": 0.1234567890123456, "kind": ` + string(quoted) + `}`
	clitest.Must(t, "", "trial", "create", "small", "--parameters", configuration, "--note", "by hand", "--server", address)
	out, _ := clitest.Must(t, "", "trial", "list", "small", "--output", "json", "--server", address)
	var trials []struct {
		State      string         `json:"state"`
		Note       string         `json:"note"`
		Parameters map[string]any `json:"parameters"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &trials))
	if len(trials) != 1 || trials[0].State != "queued" || trials[0].Note != "by hand" ||
		trials[0].Parameters["kind"] != hostile || trials[0].Parameters["rate"] != 0.1234567890123456 || trials[0].Parameters["depth"] != 3.0 {
		t.Errorf("trials %s", out)
	}
	for parameters, want := range map[string]string{
		"":            "must be a JSON object",
		"3":           "must be a JSON object",
		"{} {}":       "must be one JSON object alone",
		`{"what": 1}`: `"what" is neither a parameter nor a metric`,
		`{"depth": 1.5, "rate": 0.1, "kind": "b"}`:             "parameter depth: must be an integer",
		`{"depth": 1, "rate": 0.1, "kind": "b", "error": 0.5}`: "error is a metric",
		`{"depth": 1, "rate": 0.1}`:                            "trial.parameters",
		`{"depth": 1, "depth": 2, "rate": 0.1, "kind": "b"}`:   "depth: is given twice",
		`{"depth": 1, "rate": "0x1p-1", "kind": "b"}`:          "parameter rate: must be a number",
	} {
		clitest.WantFailure(t, want, "trial", "create", "small", "--parameters", parameters, "--server", address)
	}
}
