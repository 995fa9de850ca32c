package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// Rows of the table of trials appear without a reload, and what the reader has chosen stays chosen. No view
// of trials needs to be scrolled sideways on a phone.
func TestPageTrials(t *testing.T) {
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"))
	file := filepath.Join(t.TempDir(), "live.yaml")
	must(t, "study", "init", "--trainer", "dp-sgd", "--set", "generated=true", "--id", "live", "--trials", "8", "--file", file)
	must(t, "study", "create", "--server", srv.address, file)
	b := openTab(t, srv.url)
	b.open("/studies/live/trials")
	eval[bool](b, `window.sameDocument = true`)
	agent := start(t, program(t, "agent", "--server", srv.address, "--study", "live"), os.Stderr)
	b.await(`document.getElementById("trial-2")`)
	eval[bool](b, `document.getElementById("pick-1").click(), document.getElementById("trial-1").focus(), true`)
	if code := agent.wait(); code != 0 {
		t.Fatalf("the agent ended with %d", code)
	}
	b.await(`document.getElementById("trial-8") && document.body.innerText.includes("8 of 8 trials succeeded")`)
	if !eval[bool](b, `window.sameDocument === true`) {
		t.Error("the page was loaded again")
	}
	if !eval[bool](b, `document.getElementById("pick-1").checked && document.activeElement.id == "trial-1"`) {
		t.Error("an update has cleared a box or taken the focus")
	}
	eval[bool](b, `document.getElementById("pick-8").click(), document.querySelector("#compare button").click(), true`)
	b.await(`location.pathname == "/studies/live/trials/compare" && document.querySelectorAll("figure svg[data-chart]").length >= 2`)

	b.run(chromedp.EmulateViewport(360, 800))
	for _, path := range []string{
		"/studies/live/trials", "/studies/live/trials/3", "/studies/live/trials/compare?trial=1&trial=2", "/studies/live/queue", "/studies/live/edit", "/studies/live/report", "/about",
	} {
		b.open(path)
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
			t.Errorf("%s is %d px wide", path, wide)
		}
	}
}
