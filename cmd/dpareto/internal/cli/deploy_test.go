package cli_test

import (
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
	if err != nil {
		t.Fatal(err)
	}
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

// What the units and manifests start gives metrics, where Prometheus looks for them.
func TestDeployedMetrics(t *testing.T) {
	prometheus := deployed(t, "prometheus/prometheus.yml")
	for name, want := range map[string]string{"systemd/server.yaml": "127.0.0.1:8322", "kubernetes/server.yaml": "0.0.0.0:8322"} {
		if !strings.Contains(deployed(t, name), "http-listen: "+want+"\n") {
			t.Errorf("%s: the server does not listen on %s", name, want)
		}
	}
	if !strings.Contains(prometheus, `targets: ["127.0.0.1:8322"]`) {
		t.Error("prometheus.yml does not scrape the systemd server")
	}
	manifests := deployed(t, "kubernetes/server.yaml")
	for _, want := range []string{
		`prometheus.io/scrape: "true", prometheus.io/scheme: https, prometheus.io/port: "8322", prometheus.io/path: /metrics`,
		"{name: http, containerPort: 8322}", "{name: http, port: 8322, targetPort: http}",
	} {
		if !strings.Contains(manifests, want) {
			t.Errorf("kubernetes/server.yaml lacks %s", want)
		}
	}
	for _, label := range []string{"__meta_kubernetes_pod_annotation_prometheus_io_scrape", "container_port_name], regex: http,"} {
		if !strings.Contains(prometheus, label) {
			t.Errorf("prometheus.yml lacks %s", label)
		}
	}
}

// dockerRun is a docker run in a document: its options, and the arguments of the program.
var dockerRun = regexp.MustCompile(`docker run (.*?)"dpareto:[^"]*" (.*)`)

// The documented ways to run the image start a server that a published port leads to. What is tested is
// the program with the arguments and the environment of the image; there is no docker here.
func TestDockerRun(t *testing.T) {
	text := strings.ReplaceAll(clitest.Document(t, "docs/operations.md"), "\\\n", " ")
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

// manifest is what is checked of a Kubernetes object.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	StringData map[string]string `json:"stringData"`
	Spec       struct {
		Replicas *int
		Template struct{ Spec pod }
	}
}

type pod struct {
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken"`
	SecurityContext              struct {
		RunAsNonRoot bool `json:"runAsNonRoot"`
	} `json:"securityContext"`
	Containers []struct {
		Args            []string
		Env             []struct{ Name string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `json:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `json:"securityContext"`
		StartupProbe, ReadinessProbe struct {
			Exec struct{ Command []string }
		}
		VolumeMounts []struct{ Name, MountPath string } `json:"volumeMounts"`
	}
	Volumes []struct {
		Name   string
		Secret struct {
			SecretName string `json:"secretName"`
		}
		ConfigMap struct{ Name string } `json:"configMap"`
	}
}

func TestKubernetesManifests(t *testing.T) {
	objects := make(map[string]manifest)
	for _, file := range []string{"server.yaml", "agent.yaml", "secrets.example.yaml"} {
		text := deployed(t, "kubernetes/"+file)
		checkVariables(t, file, text)
		for _, image := range regexp.MustCompile(`image: (\S+)`).FindAllStringSubmatch(text, -1) {
			if image[1] != "dpareto:VERSION" { // which docs/operations.md replaces
				t.Errorf("%s: the image %s is not pinned", file, image[1])
			}
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			var m manifest
			if err := yaml.Unmarshal([]byte(document), &m); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" {
				t.Errorf("%s: %s %q without a name or a version", file, m.Kind, m.Metadata.Name)
			}
			objects[m.Kind+" "+m.Metadata.Name] = m
		}
	}
	checkSettings(t, "ConfigMap dpareto", objects["ConfigMap dpareto"].Data["server.yaml"])
	credentials := clitest.WriteFile(t, "auth.yaml", objects["Secret dpareto-auth"].StringData["auth.yaml"])
	if _, stderr, code := clitest.Invoke(t, "", "token", "list", "--auth-file", credentials); code != command.ExitOK {
		t.Errorf("Secret dpareto-auth: %s", stderr)
	}
	if n := objects["StatefulSet dpareto"].Spec.Replicas; n == nil || *n != 1 {
		t.Error("a store has one server")
	}
	pods := 0
	for name, m := range objects {
		p := m.Spec.Template.Spec
		if len(p.Containers) == 0 {
			continue
		}
		pods++
		volumes := make(map[string]bool)
		for _, v := range p.Volumes {
			volumes[v.Name] = true
			_, secret := objects["Secret "+v.Secret.SecretName]
			_, config := objects["ConfigMap "+v.ConfigMap.Name]
			if v.Secret.SecretName != "" && !secret || v.ConfigMap.Name != "" && !config {
				t.Errorf("%s: volume %s is of something that is not described", name, v.Name)
			}
		}
		if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken || !p.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: the pod may do more than it must", name)
		}
		for _, c := range p.Containers {
			checkCommand(t, name, c.Args)
			for _, probe := range [][]string{c.StartupProbe.Exec.Command, c.ReadinessProbe.Exec.Command} {
				if len(probe) > 0 {
					checkCommand(t, name, probe[1:])
				}
			}
			s := c.SecurityContext
			if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s: the container may do more than it must", name)
			}
			for _, mount := range c.VolumeMounts {
				if !volumes[mount.Name] && mount.Name != "data" { // of the claim
					t.Errorf("%s: there is no volume %s", name, mount.Name)
				}
			}
		}
	}
	if pods != 2 {
		t.Errorf("%d kinds of pods", pods)
	}
}
