package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	cnpg "github.com/cloudnative-pg/api/pkg/api/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// types are the published types of the objects that the manifests may have.
var types = map[string]func() meta.Object{
	"apps/v1 Deployment":                  func() meta.Object { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                 func() meta.Object { return new(apps.StatefulSet) },
	"batch/v1 Job":                        func() meta.Object { return new(batch.Job) },
	"monitoring.coreos.com/v1 PodMonitor": func() meta.Object { return new(monitoring.PodMonitor) },
	"networking.k8s.io/v1 NetworkPolicy":  func() meta.Object { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":       func() meta.Object { return new(policy.PodDisruptionBudget) },
	"postgresql.cnpg.io/v1 Cluster":       func() meta.Object { return new(cnpg.Cluster) },
	"v1 ConfigMap":                        func() meta.Object { return new(core.ConfigMap) },
	"v1 Secret":                           func() meta.Object { return new(core.Secret) },
	"v1 Service":                          func() meta.Object { return new(core.Service) },
}

// objects are decoded manifests by kind and name, such as "Service dpareto".
type objects map[string]meta.Object

// decode decodes manifests. A field that its type does not have is an error.
func decode(t *testing.T, text []byte) objects {
	t.Helper()
	all := make(objects)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		create, ok := types[kind.APIVersion+" "+kind.Kind]
		if !ok {
			t.Fatalf("%s %s is not known", kind.APIVersion, kind.Kind)
		}
		object := create()
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatalf("%s: %v:\n%s", kind.Kind, err, document)
		}
		if object.GetName() == "" {
			t.Errorf("a %s without a name", kind.Kind)
		}
		name := kind.Kind + " " + object.GetName()
		if all[name] != nil {
			t.Errorf("%s twice", name)
		}
		all[name] = object
	}
	return all
}

// find returns an object of a kind and a name, which must be there.
func find[T meta.Object](t *testing.T, all objects, name string) T {
	t.Helper()
	object, ok := all[name].(T)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return object
}

// render builds a kustomization, as kubectl kustomize does.
func render(t *testing.T, folder string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// root returns a path in the repository.
func root(path ...string) string {
	return filepath.Join(append([]string{"..", ".."}, path...)...)
}

// read reads a file of the repository.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(root(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write writes a file for the test, and returns its path.
func write(t *testing.T, path string, text []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
