package data_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

const ownSchema = `rows: public
label: {column: y, values: [a, b]}
norm: 0.5
features:
- {column: x, range: [0, 10]}
- {column: z, range: [0, 1]}
`

// The check lists what is wrong and what is odd, by column and number of rows, without a value of the file.
func TestDataCheck(t *testing.T) {
	schema := clitest.WriteFile(t, "s.yaml", ownSchema)
	file := func(rows string) string { return clitest.WriteFile(t, "d.csv", "x,y,z\n"+rows) }
	good := strings.Repeat("1,a,0.5\n9,b,0.5\n", 20)
	for _, tt := range []struct {
		rows string
		code int
		want []string
	}{
		{good, command.ExitOK, []string{"warning,z,is constant,", "warning,,rows over the bound on the norm were scaled down,40",
			"warning,,validation and test examples equal a training example: errors on them flatter a model,11",
			"fact,,training examples,29", "fact,,features,2", "fact,,bound on the norm of a row: 0.5,"}},
		{good + "12345,a,0.5\n", command.ExitOK, []string{"warning,x,numbers outside the range were moved to its ends,1"}},
		{good + "SECRET,a,0.5\n,b,1\n,a,SECRET\n1,SECRET,0\n", command.ExitFailure, []string{"error,x,values are not finite numbers; missing of the schema has the texts of missing values,1",
			"error,x,values are missing; the schema can say missing: indicator,2", "error,z,values are not finite numbers; missing of the schema has the texts of missing values,1",
			"error,y,labels are not among the values of the schema; rows without a label must be left out,1"}},
	} {
		stdout, stderr, code := clitest.Invoke(t, "", "data", "check", file(tt.rows), "--schema", schema, "--output", "csv")
		if code != tt.code || strings.Contains(stdout+stderr, "SECRET") || strings.Contains(stdout+stderr, "12345") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout, want+"\n") {
				t.Errorf("no line %q in\n%s", want, stdout)
			}
		}
	}
	clitest.WantFailure(t, "rows: must be public or private", "data", "check", file(good), "--schema", clitest.WriteFile(t, "s.yaml", "label: {}\n"))
	clitest.WantFailure(t, "no such file", "data", "check", filepath.Join(t.TempDir(), "none.csv"), "--schema", schema)
}
