package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dpareto/dpareto/internal/require"
)

// requireBrowser is the environment variable that makes tests of the page fail where there is no
// browser. Otherwise they are skipped.
const requireBrowser = "DPARETO_REQUIRE_BROWSER"

// chromium returns a context for tabs of one headless Chromium that all tests share.
var chromium = sync.OnceValues(func() (context.Context, error) {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errors.New("NO BROWSER, so the page is not tested: install Debian's package chromium")
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("force-prefers-reduced-motion", true))...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx)
})

// tab is a page in a browser with cookies of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string // of the site

	mu       sync.Mutex
	problems []string // what the browser complained about
}

// foreign begins complaints about requests to other hosts.
const foreign = "a request to another host: "

// openTab opens a tab of the width and height of a small laptop. What the browser complains about fails
// the test: an uncaught exception, a dialog, a violation of the content security policy, a request to
// another host.
func openTab(t *testing.T, url string) *tab {
	t.Helper()
	parent, err := chromium()
	if err != nil {
		if os.Getenv(requireBrowser) != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: strings.TrimSuffix(url, "/")}
	b.run(chromedp.EmulateViewport(1200, 900))
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	require.NoError(t, require.ErrOf(chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})))
	require.NoError(t, require.ErrOf(chromedp.Call(ctx, network.Enable, network.EnableParams{})))
	// A tab that is not in front has the focus, too.
	require.NoError(t, require.ErrOf(chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.problems) > 0 {
			t.Errorf("the browser complains:\n%s", strings.Join(b.problems, "\n"))
		}
	})
	return b
}

// listen collects the browser's complaints.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, event.ExceptionDetails.Text+" "+event.ExceptionDetails.Exception.Description)
	case *network.EventRequestWillBeSent:
		if url := event.Request.URL; url != b.url && !strings.HasPrefix(url, b.url+"/") && !strings.HasPrefix(url, "data:image/") {
			b.problems = append(b.problems, foreign+url)
		}
	case *page.EventJavascriptDialogOpening:
		b.problems = append(b.problems, "dialog: "+event.Message)
	case *cdplog.EventEntryAdded:
		if event.Entry.Source == cdplog.EntrySourceSecurity || strings.Contains(event.Entry.Text, "Content Security Policy") {
			b.problems = append(b.problems, event.Entry.Text)
		}
	}
}

// abroad calls a function in which the tab may ask other hosts.
func (b *tab) abroad(visit func()) {
	b.t.Helper()
	visit()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = slices.DeleteFunc(b.problems, func(problem string) bool { return strings.HasPrefix(problem, foreign) })
}

// run performs actions, which must succeed.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// open opens a path of the site.
func (b *tab) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.url + path))
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// await waits until a JavaScript expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for {
		// While a page loads there may be nothing to evaluate it in.
		if holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && holds {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s is not so after %v; the page says:\n%s", expression, patience, eval[string](b, "document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// press presses keys.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.run(chromedp.KeyEvent(key))
	}
}

// tabTo presses Tab until an element that a selector names has the focus.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	const patient = 300 // more than any view has stops
	for range patient {
		b.press(kb.Tab)
		if eval[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.t.Fatalf("Tab never comes to %s; it is at %s", selector, eval[string](b, "document.activeElement.outerHTML.slice(0, 300)"))
}

// prefer tells the page that the reader prefers a colour scheme, light or dark.
func (b *tab) prefer(scheme string) {
	b.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	require.NoError(b.t, require.ErrOf(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})))
}

// complete holds when a view has all of its parts.
const complete = `document.readyState == "complete" && !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")
	&& !document.querySelector(".busy") && ![...document.querySelectorAll(".part")].some((part) => part.textContent.trim() == "…")`

// openWhole opens a path and waits until the view has all of its parts.
func (b *tab) openWhole(path string) {
	b.t.Helper()
	b.open(path)
	b.await(complete)
}

// pageServer is a server with its page.
type pageServer struct {
	*server
	url string
}

// servePage starts a server on a store with further flags and waits until it listens.
func servePage(t *testing.T, storeFile string, flags ...string) *pageServer {
	t.Helper()
	reader, writer := io.Pipe()
	t.Cleanup(func() { reader.Close() })
	args := append([]string{"serve", "--store", storeFile, "--create", "--listen", "127.0.0.1:0"}, flags...)
	p := start(t, program(t, args...), writer)
	go func() {
		<-p.ended
		writer.Close()
	}()
	s := &pageServer{server: &server{process: p}}
	lines := bufio.NewReader(reader)
	for _, line := range []struct {
		prefix string
		value  *string
	}{{"listening on ", &s.address}, {"page on ", &s.url}} {
		text, err := lines.ReadString('\n')
		value, ok := strings.CutPrefix(strings.TrimSpace(text), line.prefix)
		if err != nil || !ok {
			t.Fatalf("the server printed %q: %v\n%s", text, err, strings.Join(p.lines(), "\n"))
		}
		*line.value = value
	}
	go io.Copy(io.Discard, reader)
	return s
}

// axe returns the script of axe-core, which make unit downloads.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("..", "..", ".bin", "axe.min.js"))
	if err != nil {
		if os.Getenv(requireBrowser) != "" {
			t.Fatal(err)
		}
		t.Skipf("NO axe-core, so accessibility is not tested: make .bin/axe.min.js (%v)", err)
	}
	return string(script)
}
