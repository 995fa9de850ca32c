package report_test

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// specification returns the study that a report says creates its study again.
func specification(t *testing.T, report string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)<pre tabindex="0" id="specification">(.*?)</pre>`).FindStringSubmatch(report)
	if m == nil {
		t.Fatalf("no specification in\n%s", report)
	}
	return html.UnescapeString(m[1])
}

func TestReport(t *testing.T) {
	clitest.RunStudy(t, "svt", "--trainer sparse-vector --trials 12", 10)
	path := filepath.Join(t.TempDir(), "report.html")
	clitest.Must(t, "", "report", "svt", "--out", path)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	report := string(content)
	for _, want := range []string{
		"<!doctype html>", "<h1>", "<h2>Question</h2>", "<h2>Front</h2>", "<svg", "<h2>Recommendation</h2>", "<h2>Guarantee</h2>", "<h2>What the whole search has spent</h2>",
		"<h2>What was run</h2>", "<h2>How to repeat it</h2>", "sparse-vector", "12 succeeded", "dpareto report svt --out report.html",
		"Runs of this study were seeded, so no ε holds for them", // RunStudy gives the agent a seed
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is missing in\n%s", want, report)
		}
	}
	for _, never := range []string{"<script", "src=", "@import", "url(http", "<link"} {
		if strings.Contains(report, never) {
			t.Errorf("the file is not self-contained: %q", never)
		}
	}

	// The specification creates the same study again.
	clitest.Must(t, specification(t, report), "study", "create", "-", "--id", "again")
	spec := func(id string) (spec any) {
		var study struct {
			Spec any `json:"spec"`
		}
		require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, "study get "+id+" --output json")), &study))
		text, err := json.Marshal(study.Spec)
		require.NoError(t, err)
		return string(text)
	}
	if first, again := spec("svt"), spec("again"); first != again {
		t.Errorf("the study is\n%s\nand the report creates\n%s", first, again)
	}

	asked := clitest.Succeed(t, "report svt --epsilon 3.25,7")
	for _, want := range []string{`<th scope="row" class="n">3.25</th>`, `<th scope="row" class="n">7</th>`} {
		if !strings.Contains(asked, want) {
			t.Errorf("%q is missing in\n%s", want, asked)
		}
	}
	clitest.Fail(t, command.ExitUsage, "report svt --epsilon -1")
	clitest.Fail(t, command.ExitNotFound, "report other")
}

// A study of which nothing was measured, and one without ε, have a report.
func TestReportOfLittle(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "localhost:0")
	t.Setenv("DPARETO_SERVER", address)
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-")
	report := clitest.Succeed(t, "report small")
	for _, want := range []string{"Nothing was measured yet", "guarantees nothing about privacy", "a, b", "whole numbers from 1 to 9"} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is missing in\n%s", want, report)
		}
	}
}
