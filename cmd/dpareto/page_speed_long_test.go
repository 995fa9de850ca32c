//go:build long

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dpareto/dpareto/internal/require"
)

// dashboardVariable names a Python environment with Optuna and optuna-dashboard, which TestPageSpeed
// compares the page with; dashboardStudy names the database that
// clients/python/benchmarks/optuna_dashboard_study.py has written.
const (
	dashboardVariable = "DPARETO_OPTUNA_DASHBOARD"
	dashboardStudy    = "DPARETO_OPTUNA_STUDY"
)

// TestPageSpeed prints how long the server takes to make views and their parts, and how long a browser
// takes to show them.
func TestPageSpeed(t *testing.T) {
	fmt.Println("| trials | path | first | again, median of 5 | bytes | gzip |\n|---|---|---|---|---|---|")
	browsed := "| page | first contentful paint | first rows or observed front | posterior front |\n|---|---|---|---|\n"
	for _, trials := range []int64{100, 10_000, 100_000} {
		storeFile := filepath.Join(t.TempDir(), "page.db")
		fillStudy(t, storeFile, trials)
		srv := servePage(t, storeFile)
		for _, path := range []string{
			"/studies", "/studies/big", "/studies/big/parts/front?front=observed", "/studies/big/parts/front", "/studies/big/parts/hypervolume",
			"/studies/big/parts/spent", "/studies/big/parts/running", "/studies/big/parts/miniature",
			"/studies/big/trials", "/studies/big/trials?order_by=metrics.error", "/studies/big/trials/1",
			"/studies/big/choose", "/studies/big/parts/chooser", "/studies/big/parts/importance", "/studies/big/parts/slices", "/studies/big/parts/contour",
			"/studies/big/parts/fit", "/studies/big/parts/gain", "/studies/big/report",
		} {
			timePath(t, trials, srv.url, path)
		}
		b := openTab(t, srv.url)
		b.open("/about") // the browser has started, and keeps scripts and styles
		for _, state := range []string{"warm", "cold"} {
			if state == "cold" {
				srv = servePage(t, restart(t, srv, storeFile))
				b = openTab(t, srv.url)
			}
			b.open("/studies/big/trials")
			browsed += fmt.Sprintf("| trials, %d, %s | %s | %s | |\n", trials, state, paint(b), when(b, `document.querySelectorAll("main tbody tr").length == 50`))
			b.open("/studies/big")
			front := when(b, `document.querySelector("#front .mark")`)
			browsed += fmt.Sprintf("| front, %d, %s | %s | %s | %s |\n", trials, state, paint(b), front,
				when(b, `document.querySelector("#front-table summary")?.textContent.includes("of the model")`))
		}
	}
	fmt.Println("\n" + browsed)
	if python := os.Getenv(dashboardVariable); python != "" {
		timeDashboard(t, python)
	}
}

// restart ends a server and returns its store.
func restart(t *testing.T, srv *pageServer, storeFile string) string {
	t.Helper()
	srv.cmd.Process.Kill()
	<-srv.ended
	return storeFile
}

// timePath prints how long a path takes, and its size.
func timePath(t *testing.T, trials int64, site, path string) {
	t.Helper()
	var times []time.Duration
	var body []byte
	code := 0
	for range 6 {
		began := time.Now()
		resp, err := http.Get(site[:len(site)-1] + path)
		require.NoError(t, err)
		body, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		code = resp.StatusCode
		times = append(times, time.Since(began))
		if times[0] > time.Minute {
			break
		}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(body)
	z.Close()
	first := times[0]
	again := slices.Sorted(slices.Values(times[1:]))
	median := "—"
	if len(again) > 0 {
		median = again[len(again)/2].Round(100 * time.Microsecond).String()
	}
	remark := ""
	if code != http.StatusOK {
		remark = fmt.Sprintf(" (%d)", code)
	}
	fmt.Printf("| %d | `%s`%s | %s | %s | %d | %d |\n", trials, path, remark, first.Round(100*time.Microsecond), median, len(body), zipped.Len())
}

// paint returns the time of the first contentful paint.
func paint(b *tab) string {
	b.t.Helper()
	ms := eval[float64](b, `new Promise((done) => new PerformanceObserver((list) => list.getEntries().forEach((e) => e.name == "first-contentful-paint" && done(e.startTime)))
		.observe({ type: "paint", buffered: true }))`)
	return fmt.Sprintf("%.0f ms", ms)
}

// when returns the time, since the navigation began, at which a condition is found to hold.
func when(b *tab, condition string) string {
	b.t.Helper()
	ms := eval[float64](b, `new Promise((done) => { const look = () => (`+condition+`) ? done(performance.now()) : setTimeout(look, 5); look(); })`)
	return fmt.Sprintf("%.0f ms", ms)
}

// timeDashboard measures optuna-dashboard in the same browser.
func timeDashboard(t *testing.T, python string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().(*net.TCPAddr)
	listener.Close()
	cmd := exec.Command(filepath.Join(python, "bin", "optuna-dashboard"), "--host", "127.0.0.1", "--port", fmt.Sprint(address.Port), "sqlite:///"+os.Getenv(dashboardStudy))
	start(t, cmd, io.Discard)
	url := "http://" + address.String()
	for deadline := time.Now().Add(patience); ; {
		if resp, err := http.Get(url + "/dashboard/"); err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("optuna-dashboard does not answer")
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("| optuna-dashboard, 10000 trials | first contentful paint | first chart | points in it | bytes of scripts |\n|---|---|---|---|---|")
	b := openTab(t, url)
	for _, state := range []string{"first", "again", "again"} {
		b.run(chromedp.Navigate(url + "/dashboard/studies/1"))
		chart := when(b, `document.querySelector(".js-plotly-plot .main-svg")`)
		marks := when(b, `document.querySelector(".js-plotly-plot .scatterlayer .point, .js-plotly-plot canvas")`)
		fmt.Printf("| %s | %s | %s | %s | %d |\n", state, paint(b), chart, marks,
			eval[int](b, `performance.getEntriesByType("resource").filter((e) => e.initiatorType == "script").reduce((sum, e) => sum + e.encodedBodySize, 0)`))
	}
	b.mu.Lock()
	b.problems = nil // what that page does is its own matter
	b.mu.Unlock()
}
