package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/dataset/datasettest"
)

func TestReproduceFastEstimation(t *testing.T) {
	data := datasettest.Folder(t, "adult")
	folder := filepath.Join(t.TempDir(), "figures")
	run := []string{
		"reproduce", "fast-estimation", "--dataset", "adult", "--loss", "lr", "--rows", "100", "--draws", "1", "--data-dir", data,
	}
	stdout, stderr, code := invoke(t, "", append(run, "--plot", folder)...)
	if code != exitOK || !strings.Contains(stderr, "figure1-adult-lr.svg") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"Table 1", "0.008230", "hermite_3", "Figure 2", "n=200", "2.371", "may be released"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	figure, err := os.ReadFile(filepath.Join(folder, "figure2-laplace.svg"))
	if err != nil || !strings.Contains(string(figure), "Adult LR, 0.25") {
		t.Errorf("figure 2: %v", err)
	}
	stdout, stderr, code = invoke(t, "", append(run, "--output", "csv")...)
	if rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll(); code != exitOK || err != nil || len(rows) != 1+8+3+4+5+5+5 {
		t.Errorf("exit code %d, %d rows of CSV: %v: %s", code, len(rows), err, stderr)
	}
	stdout, stderr, code = invoke(t, "", append(run, "--output", "json")...)
	var report struct {
		Sections []struct {
			Name string           `json:"name"`
			Rows []map[string]any `json:"rows"`
		} `json:"sections"`
	}
	if err := json.Unmarshal([]byte(stdout), &report); code != exitOK || err != nil || len(report.Sections) != 6 {
		t.Errorf("exit code %d, %d sections of JSON: %v: %s", code, len(report.Sections), err, stderr)
	}
}

func TestReproduceUsage(t *testing.T) {
	for args, want := range map[string]string{
		"genesis":                            "unknown command",
		"fast-estimation --dataset gisette":  `dataset "gisette" is unknown, want some of adult, kddcup99`,
		"fast-estimation --loss hinge":       `loss "hinge" is unknown`,
		"fast-estimation --rows 10":          "want at least 100",
		"fast-estimation --plot figures.pdf": ".svg, .png",
		"fast-estimation --output markdown":  "want table, json, csv",
		"fast-estimation adult":              "unknown command",
	} {
		_, stderr, code := invoke(t, "", append([]string{"reproduce"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if _, stderr, code := invoke(t, "", "reproduce", "fast-estimation", "--data-dir", "/missing"); code != exitFailure || !strings.Contains(stderr, "--data-dir") {
		t.Errorf("a missing folder: exit code %d, %q", code, stderr)
	}
}
