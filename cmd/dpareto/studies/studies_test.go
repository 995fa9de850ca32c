package studies_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

func parse(t *testing.T, name string) *studyfile.File {
	t.Helper()
	content, err := studies.File(name)
	require.NoError(t, err)
	file, err := studyfile.Parse(content)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return file
}

// serve starts a real server and returns a client of it.
func serve(t *testing.T) *dpareto.Client {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	srv := server.New(server.Options{Store: records, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(srv.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := srv.GRPC()
	go g.Serve(listener)
	t.Cleanup(g.Stop)
	client, err := dpareto.Dial(listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{
		"adult", "adult-adam", "adult-best", "adult-correlated", "adult-curve", "adult-fairness", "adult-models", "adult-private", "adult-subset", "adult-svm", "adult-variance", "mnist", "mnist-features", "mnist-mlp1", "mnist-mlp2",
		"paper-adult-adam", "paper-adult-sgd", "paper-adult-svm", "paper-mnist-mlp1", "paper-mnist-mlp2", "svt",
	}, studies.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if _, err := studies.File("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("File of no study: %v", err)
	}
}

// Every study is accepted, and measures what its trainer measures on its parameters.
func TestStudies(t *testing.T) {
	client := serve(t)
	for _, name := range studies.Names() {
		t.Run(name, func(t *testing.T) {
			file := parse(t, name)
			if file.ID != name {
				t.Errorf("study_id is %q, want the file's name", file.ID)
			}
			want := file.Study.GetSpec()
			if _, err := spec.Compile("spec", want); err != nil {
				t.Error(err)
			}
			handle, err := file.Create(t.Context(), client, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			trial, err := handle.Ask(t.Context(), "worker")
			require.NoError(t, err)
			// The trainer takes the parameters of a trial and measures the study's metrics.
			settings := maps.Clone(want.GetTrainer().GetSettings())
			if want.GetTrainer().GetName() != "sparse-vector" {
				settings[dpsgd.SettingGenerated] = "true"
			}
			if settings[dpsgd.SettingHidden] != "" { // smaller, to be fast
				settings[dpsgd.SettingHidden] = "4"
			}
			made, err := builtin.Registry().New(t.Context(), want.GetTrainer().GetName(), trainer.Options{Settings: settings, Subset: trial.TrainingSubset()})
			require.NoError(t, err)
			parameters := trial.Parameters()
			if _, ok := parameters["epochs"]; ok {
				parameters["epochs"] = int64(1)
			}
			m, err := made.Train(t.Context(), trainer.Run{Parameters: parameters, Replicates: 1, Seed: new(uint64(1))}, nil)
			require.NoError(t, err)
			for _, metric := range want.GetMetrics() {
				if metric.GetReported() != nil && len(m.Metrics[metric.GetId()]) == 0 {
					t.Errorf("trainer %s does not measure %s", made.Name(), metric.GetId())
				}
			}
			checkRows(t, want, made)
		})
	}
}

// checkRows compares the numbers of rows that a study on Adult states with the trainer's
// data, real or generated.
func checkRows(t *testing.T, s *dparetov1.StudySpec, made trainer.Trainer) {
	t.Helper()
	sgd, ok := made.(*dpsgd.Trainer)
	if !ok {
		return
	}
	data := sgd.Parts()
	metrics := make(map[string]*dparetov1.MetricSpec)
	for _, m := range s.GetMetrics() {
		metrics[m.GetId()] = m
	}
	if got := metrics["epsilon"].GetComputed().GetPrivacy().GetDpSgd().GetDatasetSize(); got != strconv.Itoa(data.Train.Rows) {
		t.Errorf("dataset_size is %s, training has %d rows", got, data.Train.Rows)
	}
	evaluated := data.Test
	if data.Validation != nil {
		evaluated = data.Validation
	}
	if got := metrics["error"].GetReported().GetSampleSize(); got != float64(evaluated.Rows) {
		t.Errorf("sample_size is %g, error is measured on %d rows", got, evaluated.Rows)
	}
}

// The study on Adult has the domain of Table 1 of Avent et al. (2020), with the noise
// multiplier of the published code, and the design distributions of Table 4.
func TestAdultDomain(t *testing.T) {
	type distribution struct{ rate, shift, mean, deviation float64 }
	want := map[string]struct {
		lo, hi       float64
		distribution distribution
	}{
		"epochs":           {1, 64, distribution{}},
		"lot_size":         {8, 512, distribution{mean: 128, deviation: 64}},
		"learning_rate":    {5e-4, 5e-2, distribution{rate: 10, shift: 0.001}},
		"clipping_norm":    {0.1, 4, distribution{rate: 0.1, shift: 0.1}},
		"noise_multiplier": {0.1, 16, distribution{rate: 0.1, shift: 0.1}},
	}
	s := parse(t, "adult").Study.GetSpec()
	var ids []string
	for _, p := range s.GetParameters() {
		ids = append(ids, p.GetId())
		w := want[p.GetId()]
		lo, hi := p.GetDoubleDomain().GetMin(), p.GetDoubleDomain().GetMax()
		if d := p.GetIntegerDomain(); d != nil {
			lo, hi = float64(d.GetMin()), float64(d.GetMax())
		}
		design := p.GetDesign()
		got := distribution{
			design.GetShiftedExponential().GetRate(), design.GetShiftedExponential().GetShift(),
			design.GetNormal().GetMean(), design.GetNormal().GetStandardDeviation(),
		}
		if lo != w.lo || hi != w.hi || got != w.distribution || (w.distribution == distribution{}) != (design.GetUniform() != nil) {
			t.Errorf("%s: [%g, %g] with distribution %+v, want %+v", p.GetId(), lo, hi, got, w)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("parameters %v", ids)
	}
}

// The constant points of bundled studies are what the data say.
func TestConstantPoints(t *testing.T) {
	// Their files say why; the trainer of svt declares none.
	none := []string{"adult-best", "adult-curve", "adult-fairness", "adult-private", "adult-subset", "adult-variance", "svt"} // and the ones of the paper's protocol
	registry := builtin.Registry()                                                                                            // reads data once
	for _, name := range studies.Names() {
		asked := parse(t, name).Study.GetSpec()
		if isPaper := strings.HasPrefix(name, "paper-"); isPaper || slices.Contains(none, name) {
			if len(asked.GetConstantPoints()) > 0 {
				t.Errorf("%s has constant points", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			data := "adult"
			if strings.HasPrefix(name, "mnist") {
				data = dataset.NameMNIST
			}
			declaration, err := registry.Declare(t.Context(), asked.GetTrainer().GetName(), trainer.Options{
				Settings: asked.GetTrainer().GetSettings(), DataDir: datasettest.Folder(t, data),
			})
			require.NoError(t, err)
			want := maps.Clone(declaration.Constants[0].Values)
			want["epsilon"] = 0
			if points := asked.GetConstantPoints(); len(points) != 1 || points[0].GetId() != declaration.Constants[0].Name || !maps.Equal(points[0].GetValues(), want) {
				t.Errorf("constant points %v, want %v", points, want)
			}
		})
	}
}
