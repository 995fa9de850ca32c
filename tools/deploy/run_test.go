package deploy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	compose "github.com/compose-spec/compose-go/v2/types"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// binary returns the program, which make builds.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DPARETO_BINARY")
	if path == "" {
		t.Fatal("DPARETO_BINARY does not name the program: run make test-deploy")
	}
	return path
}

// runProgram runs the program with no other environment, and returns what it prints.
func runProgram(t *testing.T, environment []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env = environment
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("dpareto %s: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	return string(out)
}

// serve starts the program as a server with no other environment, until the end of the test, and returns
// the ports for gRPC and for HTTP.
func serve(t *testing.T, environment []string, args ...string) (calls, page string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary(t), args...)
	cmd.Env = environment
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	port := func() string {
		if !lines.Scan() {
			_ = cmd.Wait()
			t.Fatal(log.String())
		}
		_, port, err := net.SplitHostPort(regexp.MustCompile(`[^ /]+:\d+`).FindString(lines.Text()))
		if err != nil {
			t.Fatalf("%v: %q", err, lines.Text())
		}
		return port
	}
	return port(), port()
}

// get asks a server on this machine, by a name and with a token, and returns the status and the answer.
func get(t *testing.T, client *http.Client, url, host, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// checkMetrics checks that a server gives its metrics for a token and no others.
func checkMetrics(t *testing.T, client *http.Client, url, host, token string) {
	t.Helper()
	if code, body := get(t, client, url, host, token); code != http.StatusOK || !strings.Contains(body, "\ndpareto_build_info{") {
		t.Errorf("metrics: %d %.200s", code, body)
	}
	if code, _ := get(t, client, url, host, ""); code != http.StatusUnauthorized {
		t.Errorf("metrics without a token: %d", code)
	}
}

// metricsToken makes a token that reads metrics and does nothing else.
func metricsToken(t *testing.T, authFile string) string {
	t.Helper()
	return strings.TrimSpace(runProgram(t, nil, "token", "create", "--name", "prometheus", "--metrics", "--auth-file", authFile))
}

// commands returns the block of commands in docs/reference/operations.md with a line.
func commands(t *testing.T, line string) string {
	t.Helper()
	for block := range strings.SplitSeq(string(read(t, "docs", "reference", "operations.md")), "\n\n") {
		if text := strings.ReplaceAll("\n"+block, "\n    ", "\n"); strings.Contains(text, "\n"+line) && strings.HasPrefix(block, "    ") {
			return text
		}
	}
	t.Fatalf("docs/reference/operations.md has no commands with %q", line)
	return ""
}

// shell runs commands in a folder, where dpareto is the program.
func shell(t *testing.T, folder, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s%s", err, text, out)
	}
}

// The settings of the pods start a server that answers the kubelet's probes, by the pod's address and
// without a certificate that anybody checks, and Prometheus.
func TestServerOfPods(t *testing.T) {
	folder := t.TempDir()
	shell(t, folder, strings.Replace(commands(t, "openssl req -x509"), "DNS:localhost", "DNS:dpareto", 1))
	scraper := metricsToken(t, filepath.Join(folder, "auth.yaml"))
	settings := regexp.MustCompile(`/etc/dpareto/(auth|tls)/`).ReplaceAllString(string(read(t, "deploy", "kubernetes", "base", "settings.yaml")), folder+"/")
	settings = strings.NewReplacer(":8321", ":0", ":8322", ":0").Replace(settings)
	_, port := serve(t, []string{"DPARETO_STORE=" + filepath.Join(folder, "dpareto.db"), "DPARETO_CREATE=true"},
		"serve", "--config", write(t, filepath.Join(folder, "server.yaml"), []byte(settings)))

	kubelet := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer kubelet.CloseIdleConnections()
	container := pods(render(t, root("deploy", "kubernetes", "file")))["StatefulSet dpareto"].Spec.Containers[0]
	for _, probe := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		url := strings.ToLower(string(probe.HTTPGet.Scheme)) + "://127.0.0.1:" + port + probe.HTTPGet.Path
		if code, body := get(t, kubelet, url, "10.1.2.3:8322", ""); code != http.StatusOK {
			t.Errorf("%s: %d %s", url, code, body)
		}
	}

	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	prometheus := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "dpareto"}}}
	defer prometheus.CloseIdleConnections()
	checkMetrics(t, prometheus, "https://127.0.0.1:"+port+"/metrics", "10.1.2.3:8322", scraper)
}

// composed returns the environment of a service, that of the image included, with some changes.
func composed(t *testing.T, service compose.ServiceConfig, changes map[string]string) []string {
	t.Helper()
	environment := make(map[string]string)
	for _, line := range regexp.MustCompile(`(?m)^ENV (.*)$`).FindAllSubmatch(read(t, "deploy", "docker", "Dockerfile"), -1) {
		for pair := range strings.FieldsSeq(string(line[1])) {
			name, value, _ := strings.Cut(pair, "=")
			environment[name] = value
		}
	}
	for name, value := range service.Environment {
		environment[name] = *value
	}
	for name, value := range changes {
		if environment[name] == "" {
			t.Errorf("service %s has no %s", service.Name, name)
		}
		environment[name] = value
	}
	var list []string
	for name, value := range environment {
		if value != "" {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// The Compose file is valid, publishes nothing beyond this machine, and, after the documented commands, the
// server, agents and Prometheus of it understand each other. There are no containers here: the program
// runs with their arguments, environment and files, and a store in a file.
func TestCompose(t *testing.T) {
	folder := t.TempDir()
	version := filepath.Join("cmd", "internal", "command", "VERSION")
	write(t, filepath.Join(folder, version), read(t, version))
	if err := os.CopyFS(filepath.Join(folder, "deploy"), os.DirFS(root("deploy"))); err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(folder, "deploy", "compose")
	shell(t, folder, commands(t, "mkdir -m 700 secrets"))
	variables, err := os.ReadFile(filepath.Join(folder, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	environment := make(map[string]string)
	for line := range strings.Lines(string(variables)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		environment[name] = value
	}
	file := filepath.Join(folder, "compose.yaml")
	project, err := loader.LoadWithContext(t.Context(), compose.ConfigDetails{
		WorkingDir: folder, ConfigFiles: []compose.ConfigFile{{Filename: file}}, Environment: environment,
	})
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(names, []string{"agent", "database", "grafana", "prometheus", "server"}) {
		t.Errorf("services %v", names)
	}
	for _, service := range project.Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("service %s publishes %s on %q", service.Name, port.Published, port.HostIP)
			}
		}
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == compose.VolumeTypeBind && err != nil {
				t.Error(err)
			}
		}
	}
	for name, secret := range project.Secrets {
		if _, err := os.Stat(secret.File); err != nil || !strings.HasSuffix(secret.File, name) {
			t.Errorf("secret %s: %s, %v", name, secret.File, err)
		}
	}

	secrets := filepath.Join(folder, "secrets")
	server := project.Services["server"]
	grpc, page := serve(t, composed(t, server, map[string]string{
		"DPARETO_LISTEN": "0.0.0.0:0", "DPARETO_HTTP_LISTEN": "0.0.0.0:0",
		"DPARETO_STORE": filepath.Join(folder, "dpareto.db"), "DPARETO_STORE_PASSWORD_FILE": "", // a database
		"DPARETO_AUTH_FILE": filepath.Join(secrets, "server", "auth.yaml"),
	}), server.Command...)
	address := "127.0.0.1:" + grpc
	runProgram(t, nil, append(slices.Clone(server.HealthCheck.Test[2:]), "--server", address)...)

	runProgram(t, nil, "study", "create", root("cmd", "dpareto", "studies", "svt.yaml"), "--server", address, "--token-file", filepath.Join(secrets, "operator.token"))
	agent := project.Services["agent"]
	if *agent.Deploy.Replicas != 2 {
		t.Errorf("%d agents", *agent.Deploy.Replicas)
	}
	runProgram(t, composed(t, agent, map[string]string{
		"DPARETO_SERVER": address, "DPARETO_TOKEN_FILE": filepath.Join(secrets, "agent.token"), "XDG_CACHE_HOME": t.TempDir(),
	}), agent.Command...)

	var scrape struct {
		ScrapeConfigs []struct {
			JobName       string `json:"job_name"`
			Authorization struct {
				File string `json:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal(read(t, "deploy", "compose", "prometheus.yml"), &scrape); err != nil {
		t.Fatal(err)
	}
	job := scrape.ScrapeConfigs[0]
	if target := job.StaticConfigs[0].Targets[0]; target != "server:8322" || job.JobName != "dpareto" {
		t.Errorf("job %s asks %s", job.JobName, target)
	}
	scraper, err := os.ReadFile(filepath.Join(secrets, filepath.Base(job.Authorization.File)))
	if err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, http.DefaultClient, "http://127.0.0.1:"+page+"/metrics", "server:8322", strings.TrimSpace(string(scraper)))
}

// A task of the Slurm array that gets SIGTERM gives its trials back. There is no Slurm here: bash runs the
// script, as Slurm does.
func TestSlurm(t *testing.T) {
	folder := t.TempDir()
	port, _ := serve(t, nil, "serve", "--listen", "127.0.0.1:0", "--store", filepath.Join(folder, "dpareto.db"), "--create")
	address := "DPARETO_SERVER=127.0.0.1:" + port
	study := strings.NewReplacer("replicates: 50 ", "replicates: 10000 ").Replace(string(read(t, "cmd", "dpareto", "studies", "svt.yaml")))
	runProgram(t, []string{address}, "study", "create", write(t, filepath.Join(folder, "svt.yaml"), []byte(study)))
	task := exec.CommandContext(t.Context(), "bash", root("deploy", "slurm", "workers.sbatch"), binary(t), "agent", "--study", "svt", "--workers", "2", "--log-level", "debug")
	task.Env = append(os.Environ(), address, "XDG_CACHE_HOME="+folder)
	log, err := task.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for started := 0; started < 2 && lines.Scan(); {
		if strings.Contains(lines.Text(), `msg="trial started"`) {
			started++
		}
	}
	if err := task.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, log); err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(); err != nil {
		t.Errorf("the task ended with %v", err)
	}
	var trials []struct {
		State string `json:"state"`
		Lease any    `json:"lease"`
	}
	if err := json.Unmarshal([]byte(runProgram(t, []string{address}, "trial", "list", "svt", "--output", "json")), &trials); err != nil {
		t.Fatal(err)
	}
	back := 0
	for _, trial := range trials {
		if trial.State == "queued" {
			back++
		}
		if trial.Lease != nil {
			t.Errorf("a trial is still with the task: %v", trial)
		}
	}
	if back != 2 {
		t.Errorf("%d trials were given back, want 2: %v", back, trials)
	}
}
