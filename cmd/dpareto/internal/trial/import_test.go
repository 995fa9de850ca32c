package trial_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/trial"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// runsStudy has a parameter of each kind, one of them conditional, categories that look like numbers, and
// curves.
const runsStudy = `study_id: runs
spec:
  parameters:
  - {id: epochs, integer_domain: {min: 1, max: 10}, scale: LINEAR}
  - {id: rate, double_domain: {min: 0.001, max: 10}, scale: LOG}
  - {id: width, discrete_domain: {values: [0.1, 0.3]}, scale: LINEAR}
  - {id: python, categorical_domain: {categories: [3.9, 3.10, "007", "a,b;c\td", "ä \"q\""]}}
  - {id: depth, integer_domain: {min: 1, max: 9}, scale: LINEAR, when: {python: 3.10}}
  metrics:
  - {id: error, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 1, reported: {}}
  - {id: size, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 10, computed: {expression: "double(epochs)"}}
  - {id: note, role: TRACKED, reported: {}}
  checkpoint_parameter: epochs
  algorithm: {name: RANDOM}
`

// server is a server with studies for imports.
type server struct {
	t       *testing.T
	address string
	studies int
}

func newServer(t *testing.T) *server {
	t.Helper()
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	return &server{t: t, address: address}
}

// study creates a study like runs and returns its id.
func (s *server) study() string {
	s.t.Helper()
	s.studies++
	id := fmt.Sprintf("runs-%d", s.studies)
	clitest.Must(s.t, strings.Replace(runsStudy, "study_id: runs", "study_id: "+id, 1), "study", "create", "-", "--server", s.address)
	return id
}

// imports runs the import of a file, which must succeed, and returns the log.
func (s *server) imports(study, content string, flags ...string) string {
	s.t.Helper()
	_, log := clitest.Must(s.t, content, append([]string{"trial", "import", study, "-", "--server", s.address}, flags...)...)
	return log
}

// list returns the trials of a study without what differs between servers and times.
func (s *server) list(study string) []map[string]any {
	s.t.Helper()
	out, _ := clitest.Must(s.t, "", "trial", "list", study, "--output", "json", "--server", s.address)
	var trials []map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(out), &trials))
	for _, trial := range trials {
		for _, name := range []string{
			"name", "etag", "create_time", "start_time", "end_time", "revision", "origin", "provenance", "attempt", "labels", "number", "warnings",
		} {
			delete(trial, name)
		}
		if of, ok := trial["replicate_of"].(string); ok {
			trial["replicate_of"] = of[strings.LastIndexByte(of, '/')+1:]
		}
		measurements, _ := trial["measurements"].([]any)
		for _, m := range append(measurements, trial["final_measurement"]) {
			if m, ok := m.(map[string]any); ok {
				delete(m, "report_time")
			}
		}
	}
	return trials
}

const plainRuns = "epochs,rate,width,python,depth,error,note\n2,0.5,0.1,3.9,,0.25,1\n4,10,0.3,3.10,7,0.125,\n3,1,0.3,007,,0.5,2\n"

// The same results come out of a file however programs and countries write it.
func TestImportHabits(t *testing.T) {
	s := newServer(t)
	plain := s.study()
	s.imports(plain, plainRuns)
	want := s.list(plain)
	if len(want) != 3 {
		t.Fatalf("%d trials", len(want))
	}
	wide := func(text string, order func(uint16) []byte) string {
		var out []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
			out = append(out, order(unit)...)
		}
		return string(out)
	}
	semicolons := strings.ReplaceAll(plainRuns, ",", ";")
	for name, content := range map[string]string{
		"byte order mark":            "\ufeff" + plainRuns,
		"mark and quoted header":     "\ufeff" + strings.Replace(plainRuns, "epochs,", "\"epochs\",", 1),
		"UTF-16":                     wide(strings.ReplaceAll(plainRuns, ",", "\t"), func(u uint16) []byte { return []byte{byte(u), byte(u >> 8)} }),
		"UTF-16, big end first":      wide(plainRuns, func(u uint16) []byte { return []byte{byte(u >> 8), byte(u)} }),
		"CR LF":                      strings.ReplaceAll(plainRuns, "\n", "\r\n"),
		"CR":                         strings.ReplaceAll(plainRuns, "\n", "\r"),
		"semicolons":                 semicolons,
		"decimal commas":             strings.NewReplacer("0.", "0,").Replace(semicolons),
		"tabs":                       strings.ReplaceAll(plainRuns, ",", "\t"),
		"sep=":                       "sep=;\r\n" + strings.ReplaceAll(semicolons, "\n", "\r\n"),
		"blank and empty lines":      "\n" + strings.ReplaceAll(plainRuns, "\n", "\n\n,,,,,,\n"),
		"empty columns at the end":   strings.ReplaceAll(plainRuns, "\n", ",,\n"),
		"more empty cells":           strings.Replace(plainRuns, "0.25,1\n", "0.25,1,,\n", 1),
		"index of a data frame":      strings.NewReplacer("epochs", ",epochs", "\n2,", "\n0,2,", "\n4,", "\n1,4,", "\n3,", "\n2,3,").Replace(plainRuns),
		"index that pandas names":    strings.NewReplacer("epochs", "Unnamed: 0,epochs", "\n2,", "\n0,2,", "\n4,", "\n1,4,", "\n3,", "\n2,3,").Replace(plainRuns),
		"integers with a gap":        strings.Replace(plainRuns, ",7,", ",7.0,", 1),
		"spaces":                     strings.NewReplacer(",0.", ", 0.", "epochs,", "epochs ,").Replace(plainRuns),
		"one unit in the last place": strings.NewReplacer(",10,0.3", ",10.000000000000002,0.30000000000000004").Replace(plainRuns),
		"JSON lines": `{"epochs":2,"rate":0.5,"width":0.1,"python":"3.9","error":0.25,"note":1}` + "\n" +
			`{"epochs":4,"rate":10.0,"width":0.3,"python":3.10,"depth":7,"error":0.125,"note":null}` + "\n" + `{"epochs":3,"rate":1,"width":3e-1,"python":"007","depth":null,"error":0.5,"note":2}`,
		"JSON list after a mark": "\ufeff" + `[{"epochs":2,"rate":0.5,"width":0.1,"python":"3.9","error":0.25,"note":1},
			{"epochs":4.0,"rate":10,"width":0.3,"python":"3.10","depth":7.0,"error":0.125}, {"epochs":3,"rate":1,"width":0.3,"python":"007","error":0.5,"note":2}]`,
		"JSON, CR": `{"epochs":2,"rate":0.5,"width":0.1,"python":"3.9","error":0.25,"note":1}` + "\r" + `{"epochs":4,"rate":10,"width":0.3,"python":"3.10",` + "\r" +
			`"depth":7,"error":0.125}` + "\r" + `{"epochs":3,"rate":1,"width":0.3,"python":"007","error":0.5,"note":2}`,
		"Optuna": ",number,values_0,datetime_start,datetime_complete,duration,params_depth,params_epochs,params_python,params_rate,params_width,user_attrs_note,user_attrs_x,state\n" +
			"0,0,0.25,2026-11-28 10:00:00.1,2026-11-28 10:00:01.2,0 days 00:00:01.1,,2,3.9,0.5,0.1,1,u,COMPLETE\n" +
			"1,1,0.125,2026-11-28 10:00:00.1,2026-11-28 10:00:01.2,0 days 00:00:01.1,7.0,4,3.10,10.0,0.3,,u,COMPLETE\n" +
			"2,2,,2026-11-28 10:00:00.1,,,7.0,4,3.10,10.0,0.3,,u,RUNNING\n" +
			"3,3,0.5,2026-11-28 10:00:00.1,2026-11-28 10:00:01.2,0 days 00:00:01.1,,3,007,1.0,0.3,2,u,TrialState.COMPLETE\n",
		"Optuna, chosen columns": "number,values_0,params_depth,params_epochs,params_python,params_rate,params_width,user_attrs_note\n" +
			"0,0.25,,2,3.9,0.5,0.1,1\n1,0.125,7.0,4,3.10,10.0,0.3,\n3,0.5,,3,007,1.0,0.3,2\n",
		"Optuna, parameters and values": "values_error,params_depth,params_epochs,params_python,params_rate,params_width,values_note,state\n" +
			"0.25,,2,3.9,0.5,0.1,1,COMPLETE\n0.125,7.0,4,3.10,10.0,0.3,,COMPLETE\n0.5,,3,007,1.0,0.3,2,COMPLETE\n",
		"Ax": "trial_index,arm_name,trial_status,generation_node,error,note,epochs,rate,width,python,depth\n" +
			"0,0_0,COMPLETED,Sobol,0.25,1,2,0.5,0.1,3.9,\n1,1_0,COMPLETED,Sobol,0.125,,4,10,0.3,3.10,7\n2,2_0,ABANDONED,MBM,,,4,10,0.3,3.10,7\n3,3_0,COMPLETED,MBM,0.5,2,3,1,0.3,007,\n",
		"Vizier": `[{"name":"projects/p/locations/l/studies/1/trials/1","id":"1","state":"SUCCEEDED","parameters":[{"parameterId":"epochs","value":2.0},{"parameterId":"rate","value":0.5},
			{"parameterId":"width","value":0.1},{"parameterId":"python","value":"3.9"}],"finalMeasurement":{"elapsedDuration":"0s","metrics":[{"metricId":"error","value":0.25},{"metricId":"note","value":1}]},"startTime":"2026-11-28T10:00:00Z"},
			{"id":"2","state":"ACTIVE","parameters":[]},
			{"id":"3","state":"SUCCEEDED","parameters":[{"parameterId":"epochs","value":4},{"parameterId":"rate","value":10},{"parameterId":"width","value":0.3},{"parameterId":"python","value":"3.10"},{"parameterId":"depth","value":7}],
			"finalMeasurement":{"metrics":[{"metricId":"error","value":0.125}]}},
			{"id":"4","state":"SUCCEEDED","parameters":[{"parameterId":"epochs","value":3},{"parameterId":"rate","value":1},{"parameterId":"width","value":0.3},{"parameterId":"python","value":"007"}],
			"finalMeasurement":{"metrics":[{"metricId":"error","value":0.5},{"metricId":"note","value":2}]}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			study := s.study()
			var flags []string
			if strings.Contains(content, "values_0") {
				flags = []string{"--map", "values_0=error"}
			}
			s.imports(study, content, flags...)
			got := s.list(study)
			for _, trial := range got { // Vizier has 0 seconds
				if m, ok := trial["final_measurement"].(map[string]any); ok {
					delete(m, "elapsed")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("trials (-want +got):\n%s", diff)
			}
		})
	}
}

// A file with a fault is refused whole, with the place and the name.
func TestImportErrors(t *testing.T) {
	s := newServer(t)
	study := s.study()
	const header = "epochs,rate,width,python,error\n"
	const good = "2,0.5,0.1,3.9,0.25\n"
	for content, want := range map[string]string{
		"":                                                                 "standard input: no header: the file is empty",
		"epochs,rate,rate,error,k\n":                                       `standard input:1: column "rate" occurs twice, as columns 2 and 3`,
		"error,epochs,error\n":                                             `standard input:1: column "error" occurs twice, as columns 1 and 3`,
		"\n\nepochs,x\n1,2\n":                                              `standard input:3: "x" is neither a parameter nor a metric of the study: give it an id`,
		header + good + "2,0.5,0.1,3.9\n":                                  "standard input:3: has 4 cells, the header has 5",
		header + good + "2,0.5,0.1,3.9,1,2":                                "standard input:3: has 6 cells, the header has 5",
		header + good + "2,a\"b,0.1,3.9,1\n":                               "standard input:3: column 4: bare",
		header + good + "2,0.5,0.1,caf\xe9,1\n":                            "standard input:3: column python is not UTF-8",
		"epochs,caf\xe9\n":                                                 "standard input:1: the name of column 2 is not UTF-8",
		"e\x00p\x00":                                                       "standard input:1: has a NUL character: save the file as UTF-8",
		header + good + "2,0x1p-1,0.1,3.9,1\n":                             `standard input:3: parameter rate: must be a number, is "0x1p-1"`,
		header + good + "2,0.5,0.1,3.9,0_1\n":                              `standard input:3: metric error: must be a number, is "0_1"`,
		header + good + "2.5,0.5,0.1,3.9,1\n":                              `standard input:3: parameter epochs: must be an integer, is "2.5"`,
		header + good + "2,NaN,0.1,3.9,1\n":                                "standard input:3: parameter rate: must be a finite number, or nothing where there is no value",
		header + good + "2,1,0.1,3.9,-inf\n":                               "standard input:3: metric error: must be a finite number, or nothing where there is no value",
		header + good + "2,\"1,000\",0.1,3.9,1\n":                          "standard input:3: parameter rate: must be a number with a decimal point and without separators of thousands",
		header + good + "2,1 000,0.1,3.9,1\n":                              "without separators of thousands",
		header + good + "2,0.5,0.1,3.1,1\n":                                `standard input:3: nothing was imported: InvalidArgument: trial.parameters["python"]`,
		header + good + "2,10.00000000000001,0.1,3.9,1\n":                  `standard input:3: nothing was imported: InvalidArgument: trial.parameters["rate"]`,
		header + good + "2,0.5,0.1,3.9,\n":                                 `standard input:3: nothing was imported: InvalidArgument: trial.final_measurement.metrics["error"]`,
		"epochs;rate;width;python;error\n2;0,5;0,1;3.9;1\n2;0.5;0,1;3.9;1": "standard input:3: column rate: numbers have decimal commas (line 2) and points (line 3)",
		"epochs;rate;width;python;error\n2;1.000,5;0,1;3.9;1\n":            "standard input:2: column rate: must be a number without separators of thousands",
		"epochs\trate\twidth\tpython\terror\n2\t1,500\t0,1\t3.9\t1\n":      "standard input:2: column rate: must be a number with a decimal point",
		"epochs,,rate\n1,2,3\n":                                            "standard input:1: column 2 has values and no name",
		"{\"epochs\": 1,\n\"epochs\": 2}":                                  "standard input:2: epochs: is given twice, first in line 1",
		"{\"epochs\": 1}\n{\"epochs\": 1, \"error\": NaN}":                 "standard input:2: error: is NaN, which is not JSON: use null",
		"{\"epochs\": 1}\n{\"python\": \"caf\xe9\"}":                       "standard input:2: is not UTF-8",
		"[{\"epochs\": 1},\n 3]":                                           "standard input:2: must be a JSON object, is 3",
		"{\"epochs\": 1}\n{\"epoch\": 1}":                                  `standard input:2: "epoch" is neither a parameter nor a metric`,
		"{\"epochs\": 1, \"error\": [1, \"x\"]}":                           `standard input:1: metric error: run 2: must be a number, is "x"`,
		"{\"epochs\": 1, \"error\": {\"0\": 1}}":                           "standard input:1: metric error: must be a number, is map",
		"{\"epochs\": 1, \"error\": true}":                                 "standard input:1: metric error: must be a number, is true",
		"epochs,error,state\n1,2,DONE\n":                                   "standard input:2: state: must be one of",
		"epochs,error,step,trial\n3,2,1,a\n3,2,1,a\n":                      "standard input:3: step: must be above 1, the step of trial a before, is 1",
		"epochs,error,step,trial\n3,2,1,a\n2,2,2,a\n":                      "standard input:3: trial a has other parameters in line 2",
		"epochs,error,step\n3,2,2\n3,2,1\n":                                "standard input:3: step: must be above 2, the step in line 2, is 1: order",
		"epochs,error,step\n3,2,1\n3,2,1\n3,2,2\n3,2,2\n":                  "standard input:5: step: must be above 2, the step in line 4, is 2: order",
		"epochs,error,step\n3,2,1\n2,2,1\n3,2,\n":                          "standard input:4: step: must be set in all lines of a curve, or in none: line 2 is of the same one",
		`{"epochs":{"a":1}}`:                                               "standard input:1: parameter epochs: must be one value, is a list or an object",
		`{"python":[3.10]}`:                                                "standard input:1: parameter python: must be one value, is a list or an object",
	} {
		clitest.Must(t, "", "trial", "list", study, "--server", s.address)
		_, log, code := clitest.Invoke(t, content, "trial", "import", study, "-", "--server", s.address)
		if code == 0 || !strings.Contains(log, want) {
			t.Errorf("%q: exit code %d, error %q\nwant %s", content, code, log, want)
		}
	}
	for _, flags := range [][]string{{"--map", "x"}, {"--map", "a=x"}, {"--ignore", "nothing"}, {"--map", "epochs=e"}, {"--map", "rate=epochs"}, {"--map", "a=b", "--map", "a=c"}} {
		if _, log, code := clitest.Invoke(t, header+good, append([]string{"trial", "import", study, "-", "--server", s.address}, flags...)...); code == 0 {
			t.Errorf("%q: %s", flags, log)
		}
	}
	if trials := s.list(study); len(trials) > 0 {
		t.Errorf("faulty files left %d trials", len(trials))
	}
	// Repeated after the mend, it is whole, once.
	for _, want := range []string{"trials=1 existed=0", "trials=0 existed=1"} {
		if log := s.imports(study, header+good); !strings.Contains(log, want) {
			t.Errorf("log %q, want %q", log, want)
		}
	}
	if log := s.imports(study, "a=b,epochs,rate,width,python,error,what\n1,2,0.5,0.1,3.9,0.25,x\n", "--map", "a=b=note", "--ignore", "what"); !strings.Contains(log, "left out columns") {
		t.Errorf("log %q", log)
	}
}

// Curves come as lines with steps or as lists, runs as lists, and failures as they were.
func TestImportCurves(t *testing.T) {
	s := newServer(t)
	want := []map[string]any(nil)
	for name, content := range map[string]string{
		"lines": "epochs,rate,width,python,error,step\n" +
			"4,0.5,0.1,3.9,0.5,1\n4,0.5,0.1,3.9,0.25,4\n4,0.5,0.1,3.9,\"[0.5, 0.75]\",2\n4,0.5,0.1,3.9,\"[0.25, 0.5]\",4\n",
		"lines by trial": "trial,epochs,rate,width,python,error,step\n" +
			"a,4,0.5,0.1,3.9,0.5,1\nb,4,0.5,0.1,3.9,\"[0.5,0.75]\",2\na,4,0.5,0.1,3.9,0.25,4\nb,4,0.5,0.1,3.9,\"[0.25,0.5]\",4\n",
		"lists": `{"epochs":4,"rate":0.5,"width":0.1,"python":"3.9","measurements":[{"step":1,"error":0.5},{"step":4,"error":0.25}]}
{"epochs":4,"rate":0.5,"width":0.1,"python":"3.9","measurements":[{"step":2,"error":[0.5,0.75]}],"error":[0.25,0.5]}`,
	} {
		study := s.study()
		s.imports(study, content)
		got := s.list(study)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(want) != 2 || len(want[0]["measurements"].([]any)) != 1 || len(want[1]["measurements"].([]any)) != 1 || want[1]["replicates"] != 2.0 {
		t.Errorf("trials %v", want)
	}
	study := s.study()
	s.imports(study, "epochs,rate,width,python,error,step\n4,1,0.1,3.9,0.5,1\n4,2,0.1,3.9,0.75,1\n4,1,0.1,3.9,0.25,2\n4,2,0.1,3.9,0.5,2\n")
	if trials := s.list(study); len(trials) != 2 || len(trials[0]["measurements"].([]any)) != 1 || len(trials[1]["measurements"].([]any)) != 1 {
		t.Errorf("curves whose lines alternate: %v", trials)
	}
	study = s.study()
	s.imports(study, "epochs,rate,width,python,error,state,state_reason,trial.note\n4,1,0.1,3.9,,infeasible,too big,seen\n4,2,0.1,3.9,,FAIL,,\n4,2,0.1,3.9,,RUNNING,,\n")
	trials := s.list(study)
	if len(trials) != 2 || trials[0]["state"] != "infeasible" || trials[0]["state_reason"] != "too big" || trials[0]["note"] != "seen" || trials[1]["state"] != "failed" {
		t.Errorf("trials %v", trials)
	}
}

// What is exported comes in again, and is equal: JSON whole, CSV without curves and notes.
func TestExportedTrialsComeBack(t *testing.T) {
	s := newServer(t)
	first := s.study()
	s.imports(first, `{"epochs":4,"rate":0.1234567890123456,"width":0.3,"python":"3.10","depth":3,"error":[0.1,0.25,0.3],"note":[1,2,3],"seconds":1.5,"trial.note":"by hand"}
{"epochs":4,"rate":1e-3,"width":0.1,"python":"007","error":0.25}
{"epochs":4,"rate":1e-3,"width":0.1,"python":"007","error":0.25}
{"epochs":10,"rate":2,"width":0.1,"python":"a,b;c\td","step":7,"error":0.5,"error.standard_error":0.125}
{"epochs":10,"rate":2,"width":0.1,"python":"ä \"q\"","measurements":[{"step":2,"error":0.75},{"step":3,"error":0.5}],"error":0.25}
{"epochs":10,"rate":2,"width":0.1,"python":"3.9","state":"infeasible","state_reason":"no, \"really\""}
{"epochs":10,"rate":3,"width":0.1,"python":"3.9","state":"failed","state_reason":"power","measurements":[{"step":2,"error":0.75}]}
`)
	clitest.Must(t, "", "trial", "create", first, "--parameters", `{"epochs": 1, "rate": 1, "width": 0.1, "python": "3.9"}`, "--server", s.address)
	want := s.list(first)
	want = want[:len(want)-1] // a queued one has no outcome
	exported, _ := clitest.Must(t, "", "trial", "list", first, "--output", "json", "--server", s.address)
	again := s.study()
	for _, log := range []string{"trials=7 existed=0", "trials=0 existed=7"} {
		if got := s.imports(again, exported); !strings.Contains(got, log) || !strings.Contains(got, "left out trials without an outcome") {
			t.Errorf("log %q, want %q", got, log)
		}
	}
	if diff := cmp.Diff(want, s.list(again)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	exported, _ = clitest.Must(t, "", "trial", "list", first, "--output", "csv", "--server", s.address)
	again = s.study()
	s.imports(again, exported)
	for _, trial := range want {
		delete(trial, "measurements")
		delete(trial, "note")
	}
	if diff := cmp.Diff(want, s.list(again)); diff != "" {
		t.Errorf("CSV %s (-want +got):\n%s", exported, diff)
	}
}

// Replicates stay replicates, under the numbers that the trials have now.
func TestImportReplicates(t *testing.T) {
	s := newServer(t)
	study := s.study()
	s.imports(study, plainRuns)
	const run = `"parameters":{"epochs":4,"rate":1,"width":0.3,"python":"3.9"},"state":"succeeded","final_measurement":{"step":4,"metrics":{"error":{"value":0.5},"size":{"value":4}}}`
	s.imports(study, `{"trials":[{"name":"studies/x/trials/7",`+run+`},{"name":"studies/x/trials/9","replicate_of":"studies/x/trials/7",`+run+`},
		{"name":"studies/x/trials/10","replicate_of":"studies/x/trials/1",`+run+`}],"revision":"12"}`)
	trials := s.list(study)
	if len(trials) != 6 || trials[4]["replicate_of"] != "4" || trials[5]["replicate_of"] != nil {
		t.Errorf("trials %v", trials)
	}
}

// Ids of a study come before columns of trials, which the export then writes with "trial.".
func TestImportOfNamesOfColumns(t *testing.T) {
	s := newServer(t)
	const study = `study_id: %s
spec:
  parameters:
  - {id: step, integer_domain: {min: 1, max: 10}, scale: LINEAR}
  - {id: state, categorical_domain: {categories: [failed, b]}}
  - {id: trial, double_domain: {min: 0, max: 1}, scale: LINEAR}
  metrics:
  - {id: note, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 1, reported: {}}
  - {id: seconds, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 1, reported: {}}
  checkpoint_parameter: step
  algorithm: {name: RANDOM}
`
	for _, id := range []string{"a", "b", "c"} {
		clitest.Must(t, fmt.Sprintf(study, id), "study", "create", "-", "--server", s.address)
	}
	s.imports("a", "step,state,trial,note,seconds,trial.seconds,trial.step\n5,failed,0.5,0.25,0.125,2.5,3\n5,b,0.25,\"[0.25,0.5]\",\"[1,2]\",,\n")
	want := s.list("a")
	for id, format := range map[string]string{"b": "csv", "c": "json"} {
		exported, _ := clitest.Must(t, "", "trial", "list", "a", "--output", format, "--server", s.address)
		s.imports(id, exported)
		if diff := cmp.Diff(want, s.list(id)); diff != "" || len(want) != 2 {
			t.Errorf("%s (-want +got):\n%s\n%s", format, diff, exported)
		}
	}
}

// An import that ends on the way says how to go on, and the same import then adds what is missing.
func TestInterruptedImport(t *testing.T) {
	s := newServer(t)
	study := s.study()
	creations := 0
	client, err := dpareto.Dial(s.address, dpareto.WithDialOptions(grpc.WithUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if create, ok := req.(*dparetov1.CreateTrialRequest); ok && !create.GetValidateOnly() {
				if creations++; creations == 3 {
					return status.Error(codes.PermissionDenied, "no more")
				}
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		})))
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	results := make([]trial.Result, 4)
	for i := range results { // the first three are equal
		results[i] = trial.Result{Line: i + 2, Values: map[string]any{"epochs": "2", "rate": "1", "width": "0.1", "python": "3.10", "depth": fmt.Sprint(1 + i/3), "error": "0.5"}}
	}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	run := func() error {
		return trial.Import(t.Context(), client, logger, client.Study(study), "f.csv", results)
	}
	if err := run(); err == nil || !strings.HasPrefix(err.Error(), "f.csv:4: PermissionDenied") || !strings.Contains(log.String(), `repeat the command for the other trials" trials=2 of=4`) {
		t.Errorf("error %v, log %s", err, log.String())
	}
	if got := s.list(study); len(got) != 2 {
		t.Errorf("%d trials after the failure, want 2", len(got))
	}
	for range 2 {
		if err := run(); err != nil {
			t.Error(err)
		}
		if got := s.list(study); len(got) != 4 {
			t.Errorf("%d trials after repeating, want 4", len(got))
		}
	}
	if creations != 5 {
		t.Errorf("%d requests, want 2 + 1 that failed + 2", creations)
	}
}
