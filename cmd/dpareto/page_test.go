package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// points is the number of points of the front on the page.
const points = `document.querySelectorAll("#front .mark").length`

// A study is trained while its page is open: points appear without a reload, also after the server
// was killed and started again.
func TestPageIsLive(t *testing.T) {
	store := filepath.Join(t.TempDir(), "page.db")
	srv := servePage(t, store)
	file := filepath.Join(t.TempDir(), "live.yaml")
	must(t, "study", "init", "--trainer", "dp-sgd", "--set", "generated=true", "--id", "live", "--trials", "12", "--file", file)
	must(t, "study", "create", "--server", srv.address, file)
	b := openTab(t, srv.url)
	b.open("/studies/live")
	eval[bool](b, `window.sameDocument = true`)
	agent := start(t, program(t, "agent", "--server", srv.address, "--study", "live"), os.Stderr)
	b.await(points + " > 1")
	srv.signal(syscall.SIGKILL)
	b.await(`document.getElementById("connection").textContent != ""`)
	servePage(t, store, "--listen", srv.address, "--http-listen", strings.TrimSuffix(strings.TrimPrefix(srv.url, "http://"), "/"))
	b.await(`document.body.innerText.includes("12 of 12 trials succeeded")`)
	b.await(`document.getElementById("connection").textContent == ""`)
	if code := agent.wait(); code != 0 {
		t.Fatalf("the agent ended with %d", code)
	}
	if !eval[bool](b, `window.sameDocument === true`) {
		t.Error("the page was loaded again")
	}
}

// A server with credentials asks for a token, keeps it from scripts, and shows each reader the buttons
// that it may press.
func TestPageSignIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.yaml")
	token := func(name, role string) string {
		return strings.TrimSpace(must(t, "token", "create", "--auth-file", file, "--name", name, "--role", role))
	}
	tokens := map[string]string{"viewer": token("eve", "viewer"), "worker": token("walt", "worker"), "admin": token("ada", "admin")}
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"), "--auth-file", file)
	create := program(t, "study", "create", "--server", srv.address, "--id", "signed", svtStudy(t, 8, 5))
	create.Env = append(create.Env, "DPARETO_TOKEN="+tokens["admin"])
	if r := finish(t, create, ""); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for role, token := range tokens {
		b := openTab(t, srv.url)
		b.open("/studies/signed")
		b.await(`location.pathname == "/sign-in"`)
		eval[bool](b, fmt.Sprintf(`document.querySelector("input[name=token]").value = %q, document.querySelector("main form").submit(), true`, token))
		b.await(`location.pathname == "/studies/signed"`)
		if eval[string](b, "document.cookie") != "" {
			t.Error("scripts can read the cookie")
		}
		pause := eval[bool](b, `!!document.querySelector("form[action$='/pause']")`)
		queue := eval[bool](b, `!!document.querySelector("[href$='/queue'], form[action$='/queue']")`)
		if pause != (role == "admin") || queue != (role != "viewer") {
			t.Errorf("%s: button to pause %t, to queue %t", role, pause, queue)
		}
		eval[bool](b, `document.querySelector("form.session").submit(), true`)
		b.await(`location.pathname == "/sign-in"`)
		b.open("/studies/signed")
		b.await(`location.pathname == "/sign-in"`)
	}
}
