package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dpareto/dpareto/internal/require"
)

// withComponents serves the page of a server, and /about/components: all components of the style sheet in the
// frame of the page, with its headers.
func withComponents(t *testing.T, page string) string {
	t.Helper()
	components, err := os.ReadFile(filepath.Join("testdata", "components.html"))
	require.NoError(t, err)
	target, err := url.Parse(page)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.In.URL.Path == "/about/components" {
				r.Out.URL.Path = "/about"
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != "/about" {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			before, _, _ := bytes.Cut(body, []byte(`<main id="content" tabindex="-1">`))
			_, after, _ := bytes.Cut(body, []byte("</main>"))
			body = bytes.Join([][]byte{before, []byte(`<main id="content" tabindex="-1">`), components, []byte("</main>"), after}, nil)
			r.Body = io.NopCloser(bytes.NewReader(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL
}

// All components have their contrast and names in light, dark and print, fit on a phone, and open by the keyboard.
func TestPageComponents(t *testing.T) {
	style, err := os.ReadFile(filepath.Join("..", "..", "server", "web", "look", "page.css"))
	require.NoError(t, err)
	components, err := os.ReadFile(filepath.Join("testdata", "components.html"))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`class="([^"]+)"`).FindAllStringSubmatch(string(components), -1) {
		for class := range strings.FieldsSeq(found[1]) {
			if !strings.Contains(string(style), "."+class) {
				t.Errorf("the style sheet does not know the class %s", class)
			}
		}
	}
	script := axe(t)
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"))
	b := openTab(t, withComponents(t, srv.url))
	b.open("/about/components")
	eval[bool](b, script+"; true")
	eval[bool](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), true`)
	check := func(where string) {
		t.Helper()
		for _, violation := range eval[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((results) =>
			results.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`) {
			t.Errorf("%s: %s", where, violation)
		}
	}
	for _, width := range []int64{1440, 390} {
		b.run(chromedp.EmulateViewport(width, 900))
		b.await(`(document.activeElement.blur(), document.querySelector(".mark").focus(), document.querySelector(".card"))`)
		for _, scheme := range []string{"light", "dark"} {
			b.prefer(scheme)
			check(scheme + ", " + strconv.FormatInt(width, 10) + " px")
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				t.Errorf("the components are %d px wide on a screen of %d px: %s", wide, width, eval[string](b, fmt.Sprintf(
					`[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".scroll")).map((e) => e.outerHTML.slice(0, 80)).join("\n")`, width)))
			}
		}
	}

	// Print is light whatever the reader prefers, opens what is folded, and has no controls.
	b.run(chromedp.EmulateViewport(1200, 900))
	b.open("/about/components")
	eval[bool](b, script+"; true")
	onPaper := emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	require.NoError(t, require.ErrOf(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, onPaper)))
	check("print")
	if !eval[bool](b, `document.getElementById("covers").checkVisibility() && document.getElementById("covers").getBoundingClientRect().height > 10`) {
		t.Error("what an ε means is not printed")
	}
	if shown := eval[string](b, `[...document.querySelectorAll("button, .button, .menu, nav, select, .toast")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML.slice(0, 80)).join("\n")`); shown != "" {
		t.Errorf("controls are printed:\n%s", shown)
	}
	if background := eval[string](b, `getComputedStyle(document.querySelector(".panel")).backgroundColor`); background != "rgb(255, 255, 255)" {
		t.Errorf("panels are printed on %s", background)
	}
}
