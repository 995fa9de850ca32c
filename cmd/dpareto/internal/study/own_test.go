package study_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// people returns a table of people whose label follows their age, with mixed columns and missing values.
func people(rows int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("id,age,income,work,note,repaid\n")
	for i := range rows {
		age, income, label := 18+rng.IntN(70), fmt.Sprint(rng.IntN(100000)), "no"
		if rng.IntN(8) == 0 {
			income = "?"
		}
		if age > 50 {
			label = "yes"
		}
		fmt.Fprintf(&b, "p%d,%d,%s,%s,\"a, %d\",%s\n", i, age, income, []string{"private", "public", ""}[rng.IntN(3)], i, label)
	}
	return b.String()
}

// From a table to a front without code: propose, check, init, create, train. Agents refuse other data.
func TestOwnData(t *testing.T) {
	address, _ := clitest.StartServer(t)
	t.Setenv("DPARETO_SERVER", address)
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path(name), []byte(content), 0o600))
	}
	table := people(600)
	write("my.csv", table)
	schema := clitest.Succeed(t, "data schema "+path("my.csv")+" --public-rows 100 --label repaid")
	write("my.yaml", schema)
	for _, line := range []string{"data check " + path("my.csv"), "study init --data " + path("my.csv")} {
		clitest.WantFailure(t, "rows: must be public, because every mechanism here reveals the number", strings.Fields(line+" --schema "+path("my.yaml"))...)
	}
	write("my.yaml", strings.Replace(schema, "rows: private", "rows: public", 1))
	checked := clitest.Succeed(t, "data check "+path("my.csv")+" --schema "+path("my.yaml")+" --output csv")
	if !strings.Contains(checked, "fact,,training examples,403\n") || strings.Contains(checked, "error,") {
		t.Errorf("check:\n%s", checked)
	}
	clitest.Succeed(t, "study init --data "+path("my.csv")+" --schema "+path("my.yaml")+" --id mine --trials 4 --file "+path("study.yaml"))
	content, err := os.ReadFile(path("study.yaml"))
	require.NoError(t, err)
	for _, want := range []string{
		"dpareto study create " + path("study.yaml") + "\n", "dpareto agent --study mine --data-dir " + folder, `dataset_size: "403"`, `learning_rate: "normalized_learning_rate / clipping_norm"`,
		`dataset: "my.csv"`, `schema: "my.yaml"`, "data_digest: ", "schema_digest: ",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the study lacks %s:\n%s", want, content)
		}
	}
	_, warnings := clitest.Must(t, string(content)+"\n  seed: 1\n", "study", "create", "-")
	if strings.Contains(warnings, "WARN") {
		t.Errorf("the study has warnings: %s", warnings)
	}

	// Other data, another schema, and data without their key are refused, without a value of the file.
	key, err := os.ReadFile(path("my.csv.key"))
	require.NoError(t, err)
	agent := strings.Fields("agent --study mine --workers 1 --seed 1 --data-dir " + folder)
	write("my.csv", strings.Replace(table, ",yes\n", ",no\n", 1))
	clitest.WantFailure(t, "but the study was made with data of digest", agent...)
	write("my.csv", table+"p9,SECRET,1,private,x,no\n")
	if _, stderr, code := clitest.Invoke(t, "", agent...); code != command.ExitFailure || strings.Contains(stderr, "SECRET") ||
		!strings.Contains(stderr, `column \"age\": values are not finite numbers; missing of the schema has the texts of missing values (1 rows)`) && !strings.Contains(stderr, `column "age": values are not finite numbers; missing of the schema has the texts of missing values (1 rows)`) {
		t.Errorf("broken data: exit code %d, %s", code, stderr)
	}
	write("my.csv", table)
	write("my.yaml", schema)
	clitest.WantFailure(t, "but the study was made with a schema of digest", agent...)
	write("my.yaml", "# a comment\n"+strings.Replace(schema, "rows: private", "rows: public", 1))
	require.NoError(t, os.Remove(path("my.csv.key")))
	clitest.WantFailure(t, "my.csv.key is missing: copy it together with the data", agent...)
	write("my.csv.key", string(key))

	clitest.Must(t, "", agent...)
	trials := clitest.Succeed(t, "trial list mine --output csv")
	if strings.Count(trials, "succeeded") != 4 {
		t.Errorf("trials:\n%s", trials)
	}
	shown := clitest.Succeed(t, "trial get mine 2 --output json")
	for _, name := range []string{"data_digest", "schema_digest"} {
		_, digest, _ := strings.Cut(string(content), name+": ")
		digest, _, _ = strings.Cut(digest, "\n")
		if want := fmt.Sprintf("%q: %s", name, digest); len(digest) != 34 || !strings.Contains(shown, want) {
			t.Errorf("the trial lacks %s: %s", want, shown)
		}
	}

	// A model comes out, and predicts the labels of new rows, whose other columns it does not need.
	train := "train mine --recommend epsilon=9 --out " + path("model")
	clitest.WantFailure(t, "--data-dir names the folder", strings.Fields(train+" --data-dir "+t.TempDir())...)
	_, said := clitest.Must(t, "", strings.Fields(train+" --data-dir "+folder)...)
	if !strings.Contains(said, "replace-one adjacency, for the training rows. The search that chose the configuration had 4 runs on the same rows: "+
		"the ledger of the study states no ε for them") { // they are seeded
		t.Errorf("train said %s", said)
	}
	card, err := os.ReadFile(filepath.Join(path("model"), "card.json"))
	if err != nil || !strings.Contains(string(card), `"premise": "sampler"`) || !strings.Contains(string(card), `"checked_by": "client"`) {
		t.Errorf("card %s, %v", card, err)
	}
	if stated := clitest.Succeed(t, "statement mine --trial 1 --price=false"); !strings.Contains(strings.Join(strings.Fields(stated), " "), "by the schema my.yaml, of digest ") {
		t.Errorf("statement\n%s", stated)
	}
	clitest.WantFailure(t, "must be a new or empty folder", strings.Fields(train+" --data-dir "+folder)...)
	write("new.csv", "income,age,work\n50000,20,private\n?,85,\n10000,30,unheard of\n90000,80,public\n")
	predicted := clitest.Succeed(t, "predict "+path("model")+" "+path("new.csv"))
	lines := strings.Split(strings.TrimSpace(predicted), "\n")
	if len(lines) != 5 || lines[0] != "repaid,p_no,p_yes" {
		t.Fatalf("predictions:\n%s", predicted)
	}
	for i, want := range []string{"no", "yes", "no", "yes"} {
		if !strings.HasPrefix(lines[i+1], want+",") {
			t.Errorf("row %d is %s, want %s", i, lines[i+1], want)
		}
	}
	write("new.csv", "age,work\n50000,private\n")
	clitest.WantFailure(t, `has no column "income"`, "predict", path("model"), path("new.csv"))
	clitest.WantFailure(t, "--recommend and --out are required", "train", "mine")
	clitest.WantFailure(t, "no configuration to train meets the bounds", strings.Fields("train mine --recommend epsilon=1e-9 --out "+path("other")+" --data-dir "+folder)...)
}

// Every trainer of classifiers takes a user's own data, with several classes where it can.
func TestOwnDataOfEveryTrainer(t *testing.T) {
	address, _ := clitest.StartServer(t)
	folder := t.TempDir()
	table, schema := filepath.Join(folder, "my.csv"), filepath.Join(folder, "my.yaml")
	three := strings.ReplaceAll(people(300), "public,", "maybe,")
	for id, tt := range map[string]struct{ label, flags, want string }{
		"sgd":       {"repaid", "--trainer dp-sgd --set sampling=poisson", `learning_rate: "normalized_learning_rate / clipping_norm"`},
		"adam":      {"repaid", "--trainer dp-adam", "learning_rate: learning_rate"},
		"output":    {"repaid", "--trainer output-perturbation", "output_perturbation:"},
		"objective": {"repaid", "--trainer objective-perturbation --set evaluation=test", "objective_perturbation:"},
		"several":   {"work", "", `model: "softmax-regression"`},
	} {
		require.NoError(t, os.WriteFile(table, []byte(three), 0o600))
		proposal := clitest.Succeed(t, "data schema "+table+" --public-rows 100 --number-public --label "+tt.label)
		require.NoError(t, os.WriteFile(schema, []byte(proposal), 0o600))
		file := clitest.Succeed(t, "study init --data "+table+" --schema "+schema+" --trials 1 --id "+id+" "+tt.flags)
		if !strings.Contains(file, tt.want) {
			t.Errorf("%s: no %s in\n%s", id, tt.want, file)
		}
		clitest.Must(t, file, "study", "create", "-", "--server", address)
		clitest.Succeed(t, "agent --workers 1 --seed 1 --study "+id+" --data-dir "+folder+" --server "+address)
		if trials := clitest.Succeed(t, "trial list "+id+" --output csv --server "+address); !strings.Contains(trials, "succeeded") {
			t.Errorf("%s: %s", id, trials)
		}
		if id == "output" || id == "objective" {
			clitest.WantFailure(t, "hands out no model of these settings", "train", id, "--recommend", "error=1", "--out", filepath.Join(folder, "m"), "--server", address)
		}
	}
}

// Of rare labels, init states the baseline, and train says if a model is no better.
func TestOwnDataOfRareLabels(t *testing.T) {
	page := clitest.Document(t, "docs/how-to/rare-labels.md")
	address, _ := clitest.StartServer(t)
	t.Setenv("DPARETO_SERVER", address)
	t.Chdir(t.TempDir())
	var table strings.Builder
	table.WriteString("id,x,sick\n")
	for i := range 400 {
		label := "no"
		if i%40 == 0 {
			label = "yes"
		}
		fmt.Fprintf(&table, "p%d,%d,%s\n", i/2, i*i%7, label)
	}
	require.NoError(t, os.WriteFile("my.csv", []byte(table.String()), 0o600))
	require.NoError(t, os.WriteFile("my.yaml", []byte("{rows: public, label: {column: sick, values: ['no', 'yes']}, features: [{column: x, range: [0, 6]}], group: id}"), 0o600))
	init := strings.Fields("study init --data my.csv --schema my.yaml --trials 1 --set noise_multiplier=16 --set epochs=1")
	file, said := clitest.Must(t, "", init...)
	const baseline = `always predict "no", the class of most of the `
	if !strings.Contains(said, "my.csv: "+baseline) || !strings.Contains(said, "--constant adds it to the study") || strings.Contains(file, "constant_points") {
		t.Errorf("init said %s", said)
	}
	if constant, _ := clitest.Must(t, "", append(init, "--constant")...); !strings.Contains(constant, "# "+baseline) {
		t.Errorf("the study\n%s", constant)
	}
	clitest.Must(t, file, "study", "create", "-", "--id", "rows")
	clitest.Succeed(t, "agent --workers 1 --seed 1 --study rows")
	_, said = clitest.Must(t, "", strings.Fields("train rows --recommend epsilon=50 --out model")...)
	if !strings.Contains(said, `ε is for one row, and larger for an id in column "id" with several.`) || !strings.Contains(said, "the error is no lower than without a model ("+baseline) {
		t.Errorf("train said %s", said)
	}

	// The objective that the page on rare labels has.
	_, block, _ := strings.Cut(page, "\n    - id: error\n")
	block, _, _ = strings.Cut("    - id: error\n"+block, "\n\n")
	for metric := range strings.SplitSeq(block, "    - id: ") {
		if id, _, ok := strings.Cut(metric, "\n"); ok {
			declared := regexp.MustCompile(`    - id: ` + id + ` (?s:.*?reported: .*?\n)`)
			file = declared.ReplaceAllLiteralString(file, "    - id: "+strings.TrimSuffix(metric, "\n")+"\n")
		}
	}
	created, _ := clitest.Must(t, file, "study", "create", "-", "--id", "ranked")
	if !strings.Contains(created, "auc: objective to maximize") || !strings.Contains(created, "error: tracked") {
		t.Errorf("the study\n%s", created)
	}
	clitest.Succeed(t, "agent --workers 1 --seed 1 --study ranked")
	if recommended := clitest.Succeed(t, "recommend ranked --epsilon 50 --output json"); !strings.Contains(recommended, `"optimize": "auc"`) {
		t.Errorf("recommended\n%s", recommended)
	}

	if stated := clitest.Succeed(t, "statement rows --trial 1 --price=false"); !strings.Contains(strings.Join(strings.Fields(stated), " "), "dpareto data check prints the largest k") {
		t.Errorf("statement\n%s", stated)
	}
}

func TestOwnDataUsage(t *testing.T) {
	folder := t.TempDir()
	for line, want := range map[string]string{
		"study init --data my.csv":                                                                                "--data and --schema must be given together",
		"study init --data a/my.csv --schema my.yaml":                                                             "the schema must stand in the folder of the data",
		"study init --data " + folder + "/x --schema " + folder + "/y":                                            "no such file",
		"data check my.csv":                                                                                       "--schema: is required",
		"data schema my.csv --public-rows 3":                                                                      "--label is required",
		"data schema " + folder + "/my.csv --public-rows 3 --label x":                                             "no such file",
		"study init --trainer dp-sgd --set schema=my.yaml":                                                        "setting schema_digest is missing, want what dpareto data check prints",
		"study init --trainer dp-sgd --set data_digest=00":                                                        `setting data_digest is "00", want none without schema`,
		"study init --trainer dp-sgd --set schema=s --set train_rows=9":                                           `setting train_rows is "9", want none with schema, which divides the rows`,
		"study init --trainer dp-sgd --set schema=s --set schema_digest=1 --set data_digest=1 --set dataset=../x": "the name of a file in the data folder",
		"study init --trainer dp-sgd --set schema=s --set schema_digest=1 --set data_digest=1":                    "that is no dataset's name",
	} {
		clitest.WantFailure(t, want, strings.Fields(line)...)
	}
}

// A number to predict, and several classes, from the table to predictions.
func TestOwnDataOfOtherLabels(t *testing.T) {
	address, _ := clitest.StartServer(t)
	t.Setenv("DPARETO_SERVER", address)
	t.Chdir(t.TempDir())
	// Of 4,000 rows, 1,200 validate, of which a quarter are of each district.
	fairness := map[string]string{"rents": "fairness: {column: district, values: [harbour, old town, park, station]}\nsplit: {validation: 0.3}\n"}
	for name, tt := range map[string]struct {
		label, metrics, header string
		worst                  float64 // error
	}{
		// Always predicting the mean has error 0.14; of seven classes, a single one 0.86.
		"rents": {"rent", "rmse test_rmse mae r2 error_gap test_error_gap seconds bytes", "rent", 0.1},
		"crops": {"crop", "balanced_accuracy f1 calibration_error test_f1", "crop,p_barley,p_beans", 0.5},
	} {
		write := func(file, content string) { require.NoError(t, os.WriteFile(file, []byte(content), 0o600)) }
		write(name+".csv", clitest.Succeed(t, "data example "+name+" --rows 4000"))
		write(name+".yaml", clitest.Succeed(t, "data schema "+name+".csv --public-rows 400 --number-public --label "+tt.label)+fairness[name])
		study := clitest.Succeed(t, "study init --data "+name+".csv --schema "+name+".yaml --trials 6 --id "+name) + "\n  seed: 1\n"
		// What the trainer measures can be an objective.
		const tracked, objective = "size of the weights in a file\n      role: TRACKED\n", "\n      role: OBJECTIVE\n      goal: MINIMIZE\n      transform: LOG\n"
		study = strings.Replace(study, tracked, objective, 1)
		if !strings.Contains(study, objective) {
			t.Errorf("%s: no bytes in\n%s", name, study)
		}
		_, warnings := clitest.Must(t, study, "study", "create", "-")
		if strings.Contains(warnings, "WARN") {
			t.Errorf("%s: %s", name, warnings)
		}
		clitest.Succeed(t, "agent --workers 1 --seed 1 --study "+name)
		front := clitest.Succeed(t, "front "+name+" --output csv")
		shown := clitest.Succeed(t, "trial get "+name+" 1 --output json")
		for metric := range strings.FieldsSeq(tt.metrics) {
			if !strings.Contains(shown, strconv.Quote(metric)) {
				t.Errorf("%s: the trial lacks %s: %s", name, metric, shown)
			}
		}
		if !strings.Contains(front, "epsilon") {
			t.Errorf("%s: front %s", name, front)
		}
		_, said := clitest.Must(t, "", strings.Fields("train "+name+" --recommend epsilon=8 --out model-"+name)...)
		_, after, _ := strings.Cut(said, "test_error: ")
		number, _, _ := strings.Cut(after, " ")
		if x, err := strconv.ParseFloat(number, 64); err != nil || x > tt.worst {
			t.Errorf("%s: test error %s: %s", name, number, said)
		}
		predicted := clitest.Succeed(t, "predict model-"+name+" "+name+".csv")
		if !strings.HasPrefix(predicted, tt.header) || strings.Count(predicted, "\n") != 4001 {
			t.Errorf("%s: predictions %.200s", name, predicted)
		}
	}
	clitest.WantFailure(t, "model logistic-regression cannot predict the labels", strings.Fields("study init --data rents.csv --schema rents.yaml --set model=logistic-regression")...)
	clitest.WantFailure(t, "has 0 classes, want 2", strings.Fields("study init --data rents.csv --schema rents.yaml --trainer output-perturbation")...)
}

// The commands of the tutorial work as they stand there.
func TestOwnDataTutorial(t *testing.T) {
	address, _ := clitest.StartServer(t)
	t.Setenv("DPARETO_SERVER", address)
	text := clitest.Document(t, "docs/tutorials/own-data.md")
	t.Chdir(t.TempDir())
	run := 0
	for _, block := range strings.Split(text, "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			run++
			command, file, redirected := strings.Cut(strings.TrimSpace(line), " > ")
			rest, ok := strings.CutPrefix(command, "dpareto ")
			if !ok {
				t.Fatalf("%s is no command of dpareto", line)
			}
			if printed := clitest.Succeed(t, rest); redirected {
				require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
			}
		}
	}
	if run < 11 {
		t.Errorf("%d commands", run)
	}
	predictions, err := os.ReadFile("predictions.csv")
	require.NoError(t, err)
	rows, err := os.ReadFile("new.csv")
	require.NoError(t, err)
	right, truth := 0, strings.Split(string(rows), "\n")
	for i, line := range strings.Split(string(predictions), "\n") {
		label, _, _ := strings.Cut(line, ",")
		if i > 0 && i < len(truth) && label != "" && strings.HasSuffix(truth[i], ","+label) {
			right++
		}
	}
	if right < 70 { // of 100, of which always saying no gets about 55
		t.Errorf("%d of 100 predictions are right:\n%s", right, predictions)
	}
}
