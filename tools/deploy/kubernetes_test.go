package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// pods returns the templates of pods by the object that has them.
func pods(all objects) map[string]core.PodTemplateSpec {
	found := make(map[string]core.PodTemplateSpec)
	for name, object := range all {
		switch o := object.(type) {
		case *apps.Deployment:
			found[name] = o.Spec.Template
		case *apps.StatefulSet:
			found[name] = o.Spec.Template
		case *batch.Job:
			found[name] = o.Spec.Template
		}
	}
	return found
}

// made are the keys of Secrets that something else makes: the operator of the database.
var made = map[string][]string{
	"Secret dpareto-db-app": {"password", "username"},
	"Secret dpareto-db-ca":  {"ca.crt"},
}

// has reports whether an object among several has a key, or, with the key "", is there.
func has(name, key string, among ...objects) bool {
	for _, all := range among {
		switch o := all[name].(type) {
		case *core.ConfigMap:
			if _, ok := o.Data[key]; ok || key == "" {
				return true
			}
		case *core.Secret:
			_, data := o.Data[key]
			if _, ok := o.StringData[key]; ok || data || key == "" {
				return true
			}
		}
	}
	keys, ok := made[name]
	return ok && (key == "" || slices.Contains(keys, key))
}

// checkPods checks that pods may do no more than they must, as the standard "restricted" of Pod
// Security demands, and that what they take from elsewhere is there.
func checkPods(t *testing.T, all, given objects) {
	t.Helper()
	for name, template := range pods(all) {
		spec := template.Spec
		security := spec.SecurityContext
		if security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot ||
			security.SeccompProfile == nil || security.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
			spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: the pod may do more than it must", name)
		}
		volumes := map[string]bool{}
		if set, ok := all[name].(*apps.StatefulSet); ok {
			for _, claim := range set.Spec.VolumeClaimTemplates {
				volumes[claim.Name] = true
			}
		}
		need := func(kind, of, key string) {
			if !has(kind+" "+of, key, all, given) {
				t.Errorf("%s: there is no %s %s with %q", name, kind, of, key)
			}
		}
		for _, volume := range spec.Volumes {
			volumes[volume.Name] = true
			switch {
			case volume.Secret != nil:
				need("Secret", volume.Secret.SecretName, "")
			case volume.ConfigMap != nil:
				need("ConfigMap", volume.ConfigMap.Name, "")
			case volume.Projected != nil:
				for _, source := range volume.Projected.Sources {
					for _, item := range source.Secret.Items {
						need("Secret", source.Secret.Name, item.Key)
					}
				}
			case volume.EmptyDir == nil:
				t.Errorf("%s: volume %s is of a kind that is not checked", name, volume.Name)
			}
		}
		for _, container := range spec.Containers {
			s := container.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: the container may do more than it must", name)
			}
			if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s: resources %v", name, container.Resources)
			}
			for _, mount := range container.VolumeMounts {
				if !volumes[mount.Name] {
					t.Errorf("%s: there is no volume %s", name, mount.Name)
				}
			}
			for _, variable := range container.Env {
				if from := variable.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
					need("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
				}
			}
		}
	}
}

// hasPort reports whether a pod listens on a port with this name.
func hasPort(template core.PodTemplateSpec, name string) bool {
	return slices.ContainsFunc(template.Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == name })
}

// checkServers checks what leads to the servers: the probes, the Services, and who may pass.
func checkServers(t *testing.T, all objects, server core.PodTemplateSpec) {
	t.Helper()
	container := server.Spec.Containers[0]
	for _, probe := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || !hasPort(server, probe.HTTPGet.Port.String()) {
			t.Errorf("probe %v", probe)
		}
	}
	selects := func(what string, selector *meta.LabelSelector) {
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(server.Labels)) {
			t.Errorf("%s selects no server: %v", what, err)
		}
	}
	for name, port := range map[string]string{"dpareto": "grpc", "dpareto-http": "http"} {
		service := find[*core.Service](t, all, "Service "+name)
		selects(name, &meta.LabelSelector{MatchLabels: service.Spec.Selector})
		if ports := service.Spec.Ports; len(ports) != 1 || ports[0].TargetPort != intstr.FromString(port) || !hasPort(server, port) {
			t.Errorf("Service %s has the ports %v", name, ports)
		}
	}
	if ip := find[*core.Service](t, all, "Service dpareto").Spec.ClusterIP; ip != core.ClusterIPNone {
		t.Errorf("clients see the one address %q for all servers", ip)
	}
	network := find[*networking.NetworkPolicy](t, all, "NetworkPolicy dpareto")
	selects("the NetworkPolicy", &network.Spec.PodSelector)
	for _, rule := range network.Spec.Ingress {
		if len(rule.From) == 0 {
			t.Error("everybody may call the servers")
		}
		for _, port := range rule.Ports {
			if !hasPort(server, port.Port.String()) {
				t.Errorf("there is no port %v", port.Port)
			}
		}
	}
	// The job "pods" of deploy/prometheus goes by the annotations and the name of the port.
	if server.Annotations["prometheus.io/scrape"] != "true" {
		t.Errorf("annotations %v", server.Annotations)
	}
	monitor := find[*monitoring.PodMonitor](t, decode(t, read(t, "deploy", "kubernetes", "podmonitor.yaml")), "PodMonitor dpareto")
	selects("the PodMonitor", &monitor.Spec.Selector)
	if endpoints := monitor.Spec.PodMetricsEndpoints; len(endpoints) != 1 || !hasPort(server, *endpoints[0].Port) {
		t.Errorf("the PodMonitor has the endpoints %v", endpoints)
	}
}

// given are the objects that the operators of servers make.
func given(t *testing.T) objects {
	t.Helper()
	return decode(t, read(t, "deploy", "kubernetes", "secrets.example.yaml"))
}

func TestFile(t *testing.T) {
	all := render(t, root("deploy", "kubernetes", "file"))
	checkPods(t, all, given(t))
	set := find[*apps.StatefulSet](t, all, "StatefulSet dpareto")
	checkServers(t, all, set.Spec.Template)
	if set.Spec.Replicas == nil || *set.Spec.Replicas != 1 {
		t.Error("one process opens a file")
	}
	claims := set.Spec.VolumeClaimTemplates
	if len(claims) != 1 || !slices.Equal(claims[0].Spec.AccessModes, []core.PersistentVolumeAccessMode{core.ReadWriteOncePod}) {
		t.Errorf("claims %v", claims)
	}
	if egress := find[*networking.NetworkPolicy](t, all, "NetworkPolicy dpareto").Spec.Egress; len(egress) != 0 {
		t.Errorf("the server may call %v", egress)
	}
}

func TestPostgres(t *testing.T) {
	for _, overlay := range []string{"postgres", "cloudnativepg"} {
		t.Run(overlay, func(t *testing.T) {
			all := render(t, root("deploy", "kubernetes", overlay))
			checkPods(t, all, given(t))
			servers := find[*apps.Deployment](t, all, "Deployment dpareto")
			checkServers(t, all, servers.Spec.Template)
			rolling := servers.Spec.Strategy.RollingUpdate
			if *servers.Spec.Replicas < 2 || rolling == nil || rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.IntValue() < 1 {
				t.Errorf("an update takes servers away: %v", servers.Spec.Strategy)
			}
			budget := find[*policy.PodDisruptionBudget](t, all, "PodDisruptionBudget dpareto")
			if selector, err := meta.LabelSelectorAsSelector(budget.Spec.Selector); err != nil || !selector.Matches(labels.Set(servers.Spec.Template.Labels)) {
				t.Errorf("the budget is for %v", budget.Spec.Selector)
			}
			var ports []string
			for _, rule := range find[*networking.NetworkPolicy](t, all, "NetworkPolicy dpareto").Spec.Egress {
				for _, port := range rule.Ports {
					ports = append(ports, port.Port.String())
				}
			}
			if !slices.Contains(ports, "5432") || !slices.Contains(ports, "53") {
				t.Errorf("the servers may call the ports %v", ports)
			}
		})
	}
}

// A pod that is evicted gives way to another with the same worker ids, which begins when it has ended.
func TestWorkers(t *testing.T) {
	all := render(t, root("deploy", "kubernetes", "workers"))
	checkPods(t, all, given(t))
	for name, object := range all {
		spec := object.(*batch.Job).Spec
		if spec.CompletionMode == nil || *spec.CompletionMode != batch.IndexedCompletion || spec.BackoffLimitPerIndex == nil ||
			spec.PodFailurePolicy == nil || spec.Template.Spec.RestartPolicy != core.RestartPolicyNever {
			t.Errorf("%s: %+v", name, spec)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d kinds of workers", len(all))
	}
}

var kustomization = regexp.MustCompile("(?s)```yaml\n(# production/kustomization.yaml\n.*?)```")

// The kustomization of the documentation builds, names images by their digests, and makes all the secrets
// that servers need.
func TestDocumentedKustomization(t *testing.T) {
	found := kustomization.FindSubmatch(read(t, "docs", "reference", "operations.md"))
	if found == nil {
		t.Fatal("docs/reference/operations.md has no kustomization")
	}
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "deploy"), os.DirFS(root("deploy"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "production", "kustomization.yaml"), found[1])
	for _, file := range regexp.MustCompile(`files: \[(.*)\]`).FindAllSubmatch(found[1], -1) {
		for name := range strings.SplitSeq(string(file[1]), ", ") {
			_, path, _ := strings.Cut(name, "=")
			if path == "" {
				path = name
			}
			write(t, filepath.Join(folder, "production", path), []byte("x"))
		}
	}
	all := render(t, filepath.Join(folder, "production"))
	checkPods(t, all, nil)
	for name, template := range pods(all) {
		for _, container := range template.Spec.Containers {
			if !strings.Contains(container.Image, "@sha256:") {
				t.Errorf("%s: the image %s is not pinned", name, container.Image)
			}
		}
	}
}
