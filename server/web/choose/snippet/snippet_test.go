package snippet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"sigs.k8s.io/yaml"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/web/choose/snippet"
)

// hostile are names of categories that something takes for its own.
var hostile = []string{
	"plain", "it's", `"`, `\`, `\'`, "'; rm -rf ~; '", "$(id)", "`id`", "${HOME}", "!!", "a b", " led and trailed ", "", "-x", "--note",
	"true", "null", "~", "1", "1e5", "0x10", "2026-01-01", "- a", "a: b", "#no", "*a", "&a", "%TAG", "@", "{a: 1}", "[1]", "|", ">",
	"first\nsecond", "cr\r\n", "tab\t", "nul\x00nul", "\x1b[201~", "\x03", "\x7f", "\u0085", "\u009b", "\u2028", "\u202e", "\ufeff", "\ufffe",
	"é", "日本", "😀", "\U000e0041", "</pre><script>alert(1)</script>", "&amp;", "\U0010ffff",
}

// configurations returns random ones, with the values they must be read back as.
func configurations(t *testing.T) (all [][]snippet.Entry, want []map[string]any) {
	t.Helper()
	rng := rand.New(rand.NewPCG(21, 4))
	for i := range 60 {
		var entries []snippet.Entry
		values := make(map[string]any)
		for j, id := range []string{"cutoff", "noise_scale", "no", "y", "Null", "kind"} {
			v := new(dparetov1.Value)
			switch (i + j) % 3 {
			case 0:
				x := math.Ldexp(rng.NormFloat64(), rng.IntN(200)-100)
				if i%5 == 0 {
					x = math.Trunc(math.Pow(10, float64(rng.IntN(40)-10)))
				}
				v.Kind, values[id] = &dparetov1.Value_DoubleValue{DoubleValue: x}, x
			case 1:
				n := rng.Int64N(1<<54) - 1<<53
				v.Kind, values[id] = &dparetov1.Value_IntValue{IntValue: n}, n
			default:
				s := hostile[(i+7*j)%len(hostile)]
				v.Kind, values[id] = &dparetov1.Value_StringValue{StringValue: s}, s
			}
			entries = append(entries, snippet.Entry{ID: id, Value: v})
		}
		all, want = append(all, entries), append(want, values)
	}
	for _, name := range hostile {
		v := &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: name}}
		all, want = append(all, []snippet.Entry{{ID: "kind", Value: v}}), append(want, map[string]any{"kind": name})
	}
	return all, want
}

// same reports whether JSON holds an object with the values, each in its type.
func same(t *testing.T, text string, want map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	got := make(map[string]any)
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for id, v := range got {
		number, ok := v.(json.Number)
		if !ok {
			continue
		}
		if n, err := number.Int64(); err == nil {
			got[id] = n
		} else if got[id], err = number.Float64(); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as %#v, want %#v", text, got, want)
	}
}

// Nothing that is copied holds a character that a terminal or an editor would obey.
func checkPrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' {
			t.Errorf("%q holds %q", text, r)
		}
	}
}

func TestJSON(t *testing.T) {
	all, want := configurations(t)
	for i, entries := range all {
		checkPrintable(t, snippet.JSON(entries))
		same(t, snippet.JSON(entries), want[i])
	}
}

func TestYAML(t *testing.T) {
	all, want := configurations(t)
	for i, entries := range all {
		text := snippet.YAML(entries)
		checkPrintable(t, text)
		if n := strings.Count(text, "\n"); n != len(entries) {
			t.Errorf("%d lines for %d parameters: %s", n, len(entries), text)
		}
		got := make(map[string]any)
		if err := yaml.Unmarshal([]byte(text), &got, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for id, v := range want[i] {
			switch v := v.(type) {
			case string:
				if got[id] != v {
					t.Errorf("%s: %s is %#v, want %q", text, id, got[id], v)
				}
			case int64:
				if fmt.Sprint(got[id]) != fmt.Sprint(v) {
					t.Errorf("%s: %s is %#v, want %d", text, id, got[id], v)
				}
			case float64:
				number, ok := got[id].(json.Number)
				if x, err := number.Float64(); !ok || err != nil || x != v {
					t.Errorf("%s: %s is %#v, want %v", text, id, got[id], v)
				}
			}
		}
	}
}

// run feeds lines to a program and returns what it prints.
func run(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("there is no %s", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, problems.String())
	}
	return out.String()
}

func TestPython(t *testing.T) {
	all, want := configurations(t)
	var lines strings.Builder
	for _, entries := range all {
		checkPrintable(t, snippet.Python(entries))
		lines.WriteString(snippet.Python(entries) + "\n")
	}
	const program = `import ast, json, sys
for line in sys.stdin.buffer.read().decode("utf-8").split("\n")[:-1]: print(json.dumps(ast.literal_eval(line)))`
	read := strings.Split(run(t, lines.String(), "python3", "-c", program), "\n")
	for i := range all {
		same(t, read[i], want[i])
	}
}

// A shell hands the program these words, and does nothing else.
func TestCommand(t *testing.T) {
	all, want := configurations(t)
	for _, shell := range []string{"sh", "bash"} {
		t.Run(shell, func(t *testing.T) {
			var script strings.Builder
			script.WriteString(`dpareto() { printf '%s\n' "$#" "$@"; }` + "\n")
			for _, entries := range all {
				checkPrintable(t, snippet.Command("svt", entries))
				script.WriteString(snippet.Command("svt", entries) + "\n")
			}
			words := strings.Split(run(t, script.String(), shell), "\n")
			for i := range all {
				got := words[6*i : 6*i+6]
				if !reflect.DeepEqual(got[:5], []string{"5", "trial", "create", "svt", "--parameters"}) {
					t.Fatalf("words %q", got)
				}
				same(t, got[5], want[i])
			}
		})
	}
}

func TestEntries(t *testing.T) {
	value := &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: 3}}
	got := snippet.Entries([]*dparetov1.ParameterSpec{{Id: "b"}, {Id: "absent"}, {Id: "a"}}, map[string]*dparetov1.Value{"a": value, "b": value})
	if len(got) != 2 || got[0].ID != "b" || got[1].ID != "a" {
		t.Errorf("entries %v", got)
	}
}
