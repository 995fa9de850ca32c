package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// trainedPage starts a server with two studies: "trained", of DP-SGD, and "other", of the sparse vector
// technique.
func trainedPage(t *testing.T, trials int) *pageServer {
	t.Helper()
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"))
	file := filepath.Join(t.TempDir(), "trained.yaml")
	must(t, "study", "init", "--trainer", "dp-sgd", "--set", "generated=true", "--id", "trained", "--trials", strconv.Itoa(trials), "--file", file)
	must(t, "study", "create", "--server", srv.address, file)
	must(t, "study", "create", "--server", srv.address, "--id", "other", svtStudy(t, 8, 5))
	for _, study := range []string{"trained", "other"} {
		must(t, "agent", "--server", srv.address, "--study", study)
	}
	return srv
}

// views are the views of the site of trainedPage.
var views = map[string]string{
	"studies":        "/studies",
	"study":          "/studies/trained",
	"choose":         "/studies/trained/choose",
	"why":            "/studies/trained/why",
	"trials":         "/studies/trained/trials",
	"trial":          "/studies/trained/trials/3",
	"compare-trials": "/studies/trained/trials/compare?trial=1&trial=2&trial=3",
	"queue":          "/studies/trained/queue",
	"edit":           "/studies/trained/edit",
	"report":         "/studies/trained/report",
	"compare":        "/compare?study=trained&study=other",
	"about":          "/about",
	"sign-in":        "/sign-in",
	"error":          "/studies/none",
}

// A study that was trained, in the browser.
func TestPageTrained(t *testing.T) {
	srv := trainedPage(t, 12)
	t.Run("keyboard", func(t *testing.T) { chooseByKeyboard(t, srv) })
	t.Run("accessibility", func(t *testing.T) { findBarriers(t, srv) })
	t.Run("stable", func(t *testing.T) { watchLayout(t, srv) })
	t.Run("picture", func(t *testing.T) { savePicture(t, srv) })
	t.Run("brush", func(t *testing.T) { brushAxis(t, srv) })
}

// brushAxis keeps lines of the parallel coordinates of a comparison, by dragging along an axis and by keys.
func brushAxis(t *testing.T, srv *pageServer) {
	b := openTab(t, srv.url)
	b.openWhole("/compare?study=trained")
	b.await(`document.querySelector("#coordinates [data-axis='1'][tabindex='0']")`)
	eval[bool](b, `document.querySelector("#coordinates").open = true`)
	const lines, dim, label = `document.querySelectorAll("[data-values]").length`, `document.querySelectorAll("[data-values].dim").length`, `document.querySelector("[data-axis='1']").getAttribute("aria-valuetext")`
	all := eval[int](b, lines)
	if all < 2 || eval[int](b, dim) != 0 {
		t.Fatalf("%d lines, of which %d are dimmed before anything is chosen", all, eval[int](b, dim))
	}
	// The lines that remain are those that cross an axis in its upper half. The points, which are links, stand beside the first one.
	halved := func(axis int) string {
		return dim + fmt.Sprintf(` > 0 && [...document.querySelectorAll("[data-values]")].every((line) =>
			line.classList.contains("dim") ? line.dataset.values.split(" ")[%[1]d] < 0.52 : line.dataset.values.split(" ")[%[1]d] > 0.48)`, axis)
	}
	at := eval[[]float64](b, `(() => {
		document.querySelector("[data-axis='0']").scrollIntoView({ block: "center" });
		const box = document.querySelector("[data-axis='0']").getBoundingClientRect();
		return [box.x + box.width / 2, box.top, box.top + box.height / 2]; })()`)
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at[0]+5, at[2], chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0]+5, at[1], chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at[0]+5, at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	b.await(halved(0) + ` && document.querySelector("[data-box='0']")`)
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at[0]+5, at[2], chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at[0]+5, at[2], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	b.await(dim + ` == 0 && !document.querySelector("[data-box]")`)

	eval[bool](b, `(document.querySelector("[data-axis='1']").focus(), true)`)
	for range 10 {
		b.press(kb.ArrowUp)
	}
	b.await(halved(1) + " && " + label + fmt.Sprintf(` == "from 50 to 100 %% of the axis: " + (%d - %s) + " of %d lines kept"`, all, dim, all))
	b.press(kb.Delete)
	b.await(dim + " == 0")
}

// chooseByKeyboard goes from the list of studies to a copied configuration with the keyboard alone. What
// it copies is what QueryFront recommends.
func chooseByKeyboard(t *testing.T, srv *pageServer) {
	b := openTab(t, srv.url)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		permission := browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
			Origin: b.url, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
		}
		require.NoError(t, require.ErrOf(chromedp.CallBrowser(b.ctx, browser.SetPermission, permission)))
	}
	b.openWhole("/studies")
	b.press(kb.Tab)
	if !eval[bool](b, `document.activeElement.matches(".skip")`) {
		t.Error("the first stop is not the link that skips the navigation")
	}
	b.press(kb.Enter)
	b.await(`document.activeElement.id == "content"`)
	b.tabTo(`a[href="/studies/trained"]`)
	b.press(kb.Enter)
	b.await(`location.pathname == "/studies/trained"`)
	b.await(complete)
	b.tabTo(`a[href="/studies/trained/choose"]`)
	b.press(kb.Enter)
	b.await(`location.pathname == "/studies/trained/choose" && document.querySelector("#choice table")`)
	b.await(complete)
	b.tabTo("#choose-slider")
	const value, recommended = `document.getElementById("choose-value").value`, `document.getElementById("recommended").textContent`
	before, heading := eval[string](b, value), eval[string](b, recommended)
	b.press(kb.PageDown, kb.ArrowLeft, kb.ArrowLeft)
	b.await(fmt.Sprintf(`%s != %q && %s != %q && %s.includes(Number(%s))`, value, before, recommended, heading, recommended, value))
	b.await(complete)
	if !eval[bool](b, `document.activeElement.id == "choose-slider"`) {
		t.Error("an answer takes the focus from the slider")
	}
	bound, err := strconv.ParseFloat(eval[string](b, value), 64)
	require.NoError(t, err)
	want := recommendation(t, srv, map[string]float64{eval[string](b, `document.querySelector("#choose-form [name=bound]").value`): bound})
	for _, format := range []struct {
		heading string
		decode  func([]byte, any) error
	}{{"YAML", func(data []byte, to any) error { return yaml.Unmarshal(data, to) }}, {"JSON", json.Unmarshal}} {
		if format.heading == "JSON" { // the second of the formats, which are one stop
			b.tabTo("#show-copy-yaml")
			b.press(kb.ArrowRight)
		}
		b.tabTo(fmt.Sprintf(`[aria-label=%q]`, "Copy: "+format.heading))
		b.press(kb.Enter)
		b.await(`document.activeElement.textContent == "Copied"`)
		copied := eval[string](b, `navigator.clipboard.readText()`)
		if shown := eval[string](b, `document.getElementById(document.activeElement.dataset.copy).textContent`); copied != shown {
			t.Errorf("copied %q, shown is %q", copied, shown)
		}
		values := make(map[string]any)
		if err := format.decode([]byte(copied), &values); err != nil {
			t.Fatalf("%v in %q", err, copied)
		}
		got := make(map[string]string)
		for id, v := range values {
			got[id] = fmt.Sprint(v)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not what QueryFront recommends:\n%s", format.heading, diff)
		}
	}
	b.open("/studies/trained/choose")
	b.await(complete)
	leaveByTab(b)
}

// recommendation returns the values of the parameters that QueryFront recommends, as text.
func recommendation(t *testing.T, srv *pageServer, bounds map[string]float64) map[string]string {
	t.Helper()
	client, err := dpareto.Dial(srv.address)
	require.NoError(t, err)
	defer client.Close()
	resp, err := client.Fronts.QueryFront(t.Context(), &dparetov1.QueryFrontRequest{Name: "studies/trained", Bounds: bounds, Confidence: 0.5})
	require.NoError(t, err)
	values := make(map[string]string)
	for id, v := range resp.GetParameters() {
		switch kind := v.GetKind().(type) {
		case *dparetov1.Value_DoubleValue:
			values[id] = fmt.Sprint(kind.DoubleValue)
		case *dparetov1.Value_IntValue:
			values[id] = fmt.Sprint(kind.IntValue)
		case *dparetov1.Value_StringValue:
			values[id] = kind.StringValue
		}
	}
	return values
}

// leaveByTab checks that Tab leads through the whole view and out of it.
func leaveByTab(b *tab) {
	b.t.Helper()
	stops := eval[int](b, `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].length`)
	for range stops + 2 {
		b.press(kb.Tab)
		if eval[bool](b, `document.activeElement.getAttribute("href") == "/about"`) { // the last link
			return
		}
	}
	b.t.Errorf("%d times Tab do not lead out of the view but to %s", stops+2, eval[string](b, "document.activeElement.outerHTML.slice(0, 300)"))
}

// findBarriers looks at every view with axe-core, light and dark, on a laptop and on a phone.
func findBarriers(t *testing.T, srv *pageServer) {
	script := axe(t)
	b := openTab(t, srv.url)
	for name, path := range views {
		b.run(chromedp.EmulateViewport(1200, 900))
		b.prefer("light")
		b.openWhole(path)
		if headings := eval[int](b, `document.querySelectorAll("h1").length`); headings != 1 {
			t.Errorf("%s has %d headings of the first level", name, headings)
		}
		eval[bool](b, script+"; true")
		for _, width := range []int64{1200, 360} {
			b.run(chromedp.EmulateViewport(width, 900))
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				t.Errorf("%s is %d px wide on a screen of %d px", name, wide, width)
			}
			for _, scheme := range []string{"light", "dark"} {
				b.prefer(scheme)
				for _, violation := range eval[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((results) =>
					results.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`) {
					t.Errorf("%s, %s, %d px: %s", name, scheme, width, violation)
				}
			}
		}
	}
}

// watchLayout checks that what comes later moves nothing.
func watchLayout(t *testing.T, srv *pageServer) {
	const most = 0.1 // what web.dev calls good
	b := openTab(t, srv.url)
	for _, name := range []string{"study", "choose"} {
		for _, width := range []int64{1200, 360} {
			b.run(chromedp.EmulateViewport(width, 900))
			b.openWhole(views[name])
			shifts := eval[[]shift](b, `new Promise((done) => {
				const shifts = [], observer = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
				observer.observe({ type: "layout-shift", buffered: true });
				requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done([...shifts, ...observer.takeRecords()].map((s) => (
					{ value: s.value, moved: s.sources.map((source) => source.node?.outerHTML?.slice(0, 100)).join("; ") }))))));
			})`)
			sum := 0.0
			var moved []string
			for _, s := range shifts {
				sum += s.Value
				moved = append(moved, fmt.Sprintf("%.3f %s", s.Value, s.Moved))
			}
			t.Logf("%s, %d px: layout shift %.3f", name, width, sum)
			if sum > most {
				t.Errorf("%s, %d px: layout shift %.3f:\n%s", name, width, sum, strings.Join(moved, "\n"))
			}
		}
	}
}

// shift is a shift of the layout.
type shift struct {
	Value float64
	Moved string
}

// savePicture saves the front as PNG. The file has twice the size of the picture, is light also for readers of
// the dark theme, and shows the front: its line and points have the colour of the model.
func savePicture(t *testing.T, srv *pageServer) {
	b := openTab(t, srv.url)
	b.prefer("dark")
	b.openWhole(views["study"])
	eval[bool](b, `HTMLAnchorElement.prototype.click = function () { window.saved = { name: this.download, url: this.href }; },
		document.querySelector("[data-png]").click(), true`)
	b.await("window.saved")
	if name := eval[string](b, "window.saved.name"); name != "trained-front.png" {
		t.Errorf("the file is %s", name)
	}
	data, ok := strings.CutPrefix(eval[string](b, "window.saved.url"), "data:image/png;base64,")
	picture, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if !ok || err != nil {
		t.Fatalf("the file is no PNG: %v", err)
	}
	size := picture.Bounds().Size()
	if want := eval[[]int](b, `(({ width, height }) => [2 * width, 2 * height])(document.querySelector("#front svg.wide").viewBox.baseVal)`); size.X != want[0] || size.Y != want[1] {
		t.Errorf("the picture has %v pixels, want %v", size, want)
	}
	colours := make(map[color.RGBA]int)
	for y := range size.Y {
		for x := range size.X {
			r, g, blue, _ := picture.At(x, y).RGBA()
			colours[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(blue >> 8), 255}]++
		}
	}
	white, model := colours[color.RGBA{255, 255, 255, 255}], colours[color.RGBA{0, 0x66, 0x8a, 255}]
	if white < size.X*size.Y/2 || model < 2000 {
		t.Errorf("of %v pixels %d are white and %d have the colour of the model", size, white, model)
	}
}
