package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/cli"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// deployed reads a file of deploy/.
func deployed(t *testing.T, path string) string {
	t.Helper()
	return clitest.Document(t, filepath.Join("deploy", path))
}

// root returns the whole program.
func root() *cobra.Command { return command.Root(new(command.Env), cli.New) }

// variables returns the environment variables that any command reads.
func variables() map[string]bool {
	all := map[string]bool{remote.TokenVariable: true}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		add := func(flag *pflag.Flag) {
			for _, name := range variable.FindAllString(flag.Usage, -1) {
				all[name] = true
			}
		}
		cmd.Flags().VisitAll(add)
		cmd.PersistentFlags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root())
	return all
}

var variable = regexp.MustCompile(`DPARETO_[A-Z_]+[A-Z]`)

// checkVariables checks that all environment variables in a text are read by a command.
func checkVariables(t *testing.T, name, text string) {
	t.Helper()
	known := variables()
	for _, v := range variable.FindAllString(text, -1) {
		if !known[v] {
			t.Errorf("%s: no command reads %s", name, v)
		}
	}
}

// checkCommand checks that the command line of the program has only flags that it knows.
func checkCommand(t *testing.T, name string, args []string) {
	t.Helper()
	cmd, rest, err := root().Find(args)
	if err != nil {
		t.Errorf("%s: %v: %v", name, args, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: %v: %v", name, args, err)
	}
	if cmd.HasSubCommands() {
		t.Errorf("%s: %v does nothing", name, args)
	}
}

// serveFlags returns all flags of serve.
func serveFlags(t *testing.T) *pflag.FlagSet {
	t.Helper()
	cmd, _, err := root().Find([]string{"serve"})
	require.NoError(t, err)
	if err := cmd.ParseFlags(nil); err != nil { // adds the flags of the root
		t.Fatal(err)
	}
	return cmd.Flags()
}

// checkSettings checks a file of settings.
func checkSettings(t *testing.T, name, content string) {
	t.Helper()
	if err := serve.ReadConfiguration(serveFlags(t), clitest.WriteFile(t, "server.yaml", content)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestSystemdUnit(t *testing.T) {
	unit := deployed(t, "systemd/dpareto.service")
	checkVariables(t, "dpareto.service", unit)
	checkSettings(t, "server.yaml", deployed(t, "systemd/server.yaml"))
	started := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/dpareto (.*)$`).FindStringSubmatch(unit)
	if started == nil {
		t.Fatal("the unit does not start the program")
	}
	checkCommand(t, "dpareto.service", strings.Fields(started[1]))
	section := regexp.MustCompile(`^\[[A-Za-z]+\]$`)
	setting := regexp.MustCompile(`^[A-Za-z]+=`)
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' && !section.MatchString(line) && !setting.MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	for _, want := range []string{"User=dpareto\n", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n",
		"ProcSubset=pid\n", "SystemCallFilter=setpriority\n"} { // see server/pool
		if !strings.Contains(unit, want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
}

// Wherever the server is deployed, its memory has the same limit, and it collects garbage before.
func TestDeployedMemory(t *testing.T) {
	for name, want := range map[string][]string{
		"systemd/dpareto.service":     {"\nEnvironment=GOMEMLIMIT=900MiB\n", "\nMemoryMax=1G\n"},
		"compose/compose.yaml":        {"\n      GOMEMLIMIT: 900MiB\n", "\n    mem_limit: 1g\n"},
		"kubernetes/base/server.yaml": {"{name: GOMEMLIMIT, value: 900MiB}", "limits: {memory: 1Gi}"},
	} {
		for _, line := range want {
			if !strings.Contains(deployed(t, name), line) {
				t.Errorf("%s lacks %q", name, strings.TrimSpace(line))
			}
		}
	}
}

// What the units start gives metrics, where Prometheus looks for them.
func TestDeployedMetrics(t *testing.T) {
	if !strings.Contains(deployed(t, "systemd/server.yaml"), "http-listen: 127.0.0.1:8322\n") {
		t.Error("systemd/server.yaml: the server does not listen")
	}
	prometheus := deployed(t, "prometheus/prometheus.yml")
	for _, want := range []string{
		`targets: ["127.0.0.1:8322"]`, "__meta_kubernetes_pod_annotation_prometheus_io_scrape", "container_port_name], regex: http,",
	} {
		if !strings.Contains(prometheus, want) {
			t.Errorf("prometheus.yml lacks %s", want)
		}
	}
}

// The Compose file sets variables that the program reads.
func TestComposeVariables(t *testing.T) {
	checkVariables(t, "compose.yaml", deployed(t, "compose/compose.yaml"))
}

// dockerRun is a docker run in a document: its options, and the arguments of the program.
var dockerRun = regexp.MustCompile(`docker run (.*?)"dpareto:[^"]*" (.*)`)

// The documented ways to run the image start a server that a published port leads to. What is tested is
// the program with the arguments and the environment of the image; there is no docker here.
func TestDockerRun(t *testing.T) {
	text := strings.ReplaceAll(clitest.Document(t, "docs/reference/operations.md"), "\\\n", " ")
	listen := regexp.MustCompile(`DPARETO_LISTEN=(\S+) DPARETO_HTTP_LISTEN=(\S+)`).FindStringSubmatch(deployed(t, "docker/Dockerfile"))
	if listen == nil || listen[1] != "0.0.0.0:8321" || listen[2] != "0.0.0.0:8322" {
		t.Fatalf("the image listens on %q", listen)
	}
	runs := dockerRun.FindAllStringSubmatch(text, -1)
	if len(runs) != 3 {
		t.Fatalf("%d runs", len(runs))
	}
	for _, run := range runs {
		checkCommand(t, "operations.md", strings.Fields(run[2]))
	}
	open := strings.Fields(runs[0][2])
	if !strings.Contains(runs[0][1], "-p 127.0.0.1:8321:8321 -p 127.0.0.1:8322:8322 ") || !slices.Contains(open, "--insecure-listen") {
		t.Errorf("anybody who can reach the machine can call %q", runs[0][0])
	}
	t.Setenv("DPARETO_LISTEN", "0.0.0.0:0") // as in the image, on a free port
	t.Setenv("DPARETO_HTTP_LISTEN", "0.0.0.0:0")
	t.Setenv("DPARETO_STORE", filepath.Join(t.TempDir(), "dpareto.db"))
	clitest.Fail(t, command.ExitUsage, "serve") // the image's command: nobody says who may call
	program := clitest.Start(t, open...)
	line, err := program.Stdout.ReadString('\n')
	if err != nil {
		log, _ := program.Stop()
		t.Fatal(log)
	}
	_, port, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, serve.Listening)), "]:")
	clitest.Succeed(t, "health --server 127.0.0.1:"+port)
}

func TestDockerfile(t *testing.T) {
	text := deployed(t, "docker/Dockerfile")
	checkVariables(t, "Dockerfile", text)
	for _, want := range []string{"USER 65532:65532\n", `CMD ["serve"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile lacks %s", want)
		}
	}
	if bases := regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(text, -1); !slices.Equal(bases, []string{"FROM scratch"}) {
		t.Errorf("the image stands on %q, which is not pinned", bases)
	}
}

// manifest is what is checked of a Kubernetes object. Package tools/deploy checks the rest.
type manifest struct {
	Kind       string
	Metadata   struct{ Name string }
	StringData map[string]string `json:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct{ Containers []struct{ Args []string } }
		}
	}
}

// Manifests start the program with arguments, variables and files that it knows.
func TestKubernetesManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "deploy", "kubernetes", "*", "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		checkVariables(t, path, string(text))
	}
	checkSettings(t, "settings.yaml", deployed(t, "kubernetes/base/settings.yaml"))
	for _, file := range []string{"kubernetes/base/server.yaml", "kubernetes/workers/agent.yaml"} {
		var m manifest
		require.NoError(t, yaml.Unmarshal([]byte(deployed(t, file)), &m))
		checkCommand(t, file, m.Spec.Template.Spec.Containers[0].Args)
	}
	var secret manifest
	document, _, _ := strings.Cut(deployed(t, "kubernetes/secrets.example.yaml"), "\n---\n")
	require.NoError(t, yaml.Unmarshal([]byte(document), &secret))
	credentials := clitest.WriteFile(t, "auth.yaml", secret.StringData["auth.yaml"])
	if _, stderr, code := clitest.Invoke(t, "", "token", "list", "--auth-file", credentials); code != command.ExitOK {
		t.Errorf("%s %s: %s", secret.Kind, secret.Metadata.Name, stderr)
	}
}
