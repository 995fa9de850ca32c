//go:build unix

package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/resource"
)

// benchmarkEpochs is the largest number of epochs of a run.
const benchmarkEpochs = 40

// trainingSpec returns a study of training with DP-SGD, whose ε is computed as a privacy spec says,
// or reported if that is empty.
func trainingSpec(b *testing.B, private string, seed uint64) *dparetov1.StudySpec {
	b.Helper()
	source := `"reported":{}`
	if private != "" {
		source = `"computed":{"privacy":` + private + `}`
	}
	s := new(dparetov1.StudySpec)
	require.NoError(b, protojson.Unmarshal(fmt.Appendf(nil, `{
		"parameters":[
			{"id":"epochs","integer_domain":{"min":1,"max":%d},"scale":"SCALE_LOG"},
			{"id":"lot","integer_domain":{"min":8,"max":512},"scale":"SCALE_LOG"},
			{"id":"rate","double_domain":{"min":5e-4,"max":0.5},"scale":"SCALE_LOG"},
			{"id":"clip","double_domain":{"min":0.1,"max":4},"scale":"SCALE_LOG"},
			{"id":"noise","double_domain":{"min":0.1,"max":16},"scale":"SCALE_LOG"}],
		"metrics":[
			{"id":"epsilon","role":"METRIC_ROLE_OBJECTIVE","goal":"GOAL_MINIMIZE","transform":"TRANSFORM_LOG","reference_value":10,%s},
			{"id":"error","role":"METRIC_ROLE_OBJECTIVE","goal":"GOAL_MINIMIZE","transform":"TRANSFORM_LOGIT","reference_value":0.24,"reported":{"sample_size":16281}}],
		"seed":%d,
		"algorithm":{"name":"ALGORITHM_DEFAULT"}}`, benchmarkEpochs, source, seed), s))
	return s
}

// trained is a run of trainingSpec: what it measures after every epoch.
type trained struct {
	epochs     int64
	path, loss float64
	noise      float64
}

func trainedAs(trial *dparetov1.Trial, rng *rand.Rand) trained {
	p := trial.GetParameters()
	lot, sigma := float64(p["lot"].GetIntValue()), p["noise"].GetDoubleValue()
	return trained{
		epochs: p["epochs"].GetIntValue(),
		path:   p["rate"].GetDoubleValue() * p["clip"].GetDoubleValue() * 32561 / lot,
		loss:   math.Sqrt(lot/32561) / sigma,
		noise:  0.03 * rng.NormFloat64(),
	}
}

// after returns the measurement after an epoch. Errors fall while the weights are short and the
// noise is small beside them.
func (t trained) after(epoch int64, reportsEpsilon bool) *dparetov1.Measurement {
	passes := float64(epoch)
	away := math.Log(t.path * passes / 30)
	failure := 1 / (1 + math.Exp(1.7-0.05*away*away-0.05/(t.loss*math.Sqrt(passes))-t.noise))
	m := enginetest.ErrorAt(epoch, math.Round(failure*16281)/16281)
	if reportsEpsilon {
		m.Metrics["epsilon"] = &dparetov1.MetricValue{Value: new(5 * t.loss * math.Sqrt(passes) * (1 + t.loss))}
	}
	return m
}

// conduct runs a study with one worker, which lets runs go on to their end, and returns the processor
// seconds that the server took, and the share of epochs after the server said stop. An epoch takes as long as the server needs to judge the one before.
func conduct(b *testing.B, s *dparetov1.StudySpec, runs int) (seconds, stopped float64) {
	b.Helper()
	service := enginetest.New(b, enginetest.Options{})
	before := processorSeconds(b)
	rng := rand.New(rand.NewPCG(s.GetSeed(), 1))
	created, err := service.CreateStudy(b.Context(), &dparetov1.CreateStudyRequest{StudyId: "training", Study: &dparetov1.Study{Spec: s}})
	require.NoError(b, err)
	cached, err := service.Get(&storev1.StudyRecord{Study: created.GetStudy()})
	require.NoError(b, err)
	reports := s.GetMetrics()[0].GetComputed() == nil
	trainedEpochs := 0.0
	for range runs {
		resp, err := service.SuggestTrials(b.Context(), &dparetov1.SuggestTrialsRequest{Parent: resource.StudyName("training"), WorkerId: "w"})
		require.NoError(b, err)
		trial := resp.GetTrials()[0]
		t := trainedAs(trial, rng)
		for epoch := int64(1); s.GetCheckpointParameter() != "" && epoch < t.epochs; epoch++ {
			resp, err := service.AddMeasurement(b.Context(), &dparetov1.AddMeasurementRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: t.after(epoch, reports),
			})
			require.NoError(b, err)
			if resp.GetShouldStop() {
				stopped++
			}
			for service.Engine.IsJudging(cached, trial.GetNumber()) {
				time.Sleep(time.Millisecond)
			}
		}
		trainedEpochs += float64(t.epochs)
		_, err = service.CompleteTrial(b.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: t.after(t.epochs, reports)},
		})
		require.NoError(b, err)
	}
	service.Close()
	return processorSeconds(b) - before, stopped / trainedEpochs
}

func processorSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// accountants are the ways in which BenchmarkComputed computes ε.
var accountants = []struct{ name, private string }{
	{"rdp", `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"32561","batch_size":"lot","epochs":"epochs","noise_multiplier":"noise"},
		"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED","delta":1e-5,"adjacency":"ADJACENCY_REPLACE_ONE"}`},
	{"tightest", `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"32561","batch_size":"lot","epochs":"epochs","noise_multiplier":"noise"},
		"accountant":"ACCOUNTANT_TIGHTEST","delta":1e-5,"adjacency":"ADJACENCY_REPLACE_ONE"}`},
	{"pld", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"32561","batch_size":"lot","epochs":"epochs","noise_multiplier":"noise"},
		"accountant":"ACCOUNTANT_PLD","delta":1e-5,"adjacency":"ADJACENCY_ADD_REMOVE"}`},
}

// freshDelta counts the values of δ that BenchmarkComputed has used.
var freshDelta int

// BenchmarkComputed is a study of 30 runs whose ε is computed, beside the same study with a reported
// ε. It reports the processor time, and how many times as much as with a reported ε that is: x-first for
// the first study of a server, which fills the stand-in for ε that the search uses, x-reported for later ones.
func BenchmarkComputed(b *testing.B) {
	for _, checkpoint := range []string{"", "epochs"} {
		for _, a := range accountants {
			name := a.name
			if checkpoint != "" {
				name += "/checkpoints"
			}
			b.Run(name, func(b *testing.B) {
				spent := func(private string, seed uint64) float64 {
					s := trainingSpec(b, private, seed)
					s.CheckpointParameter = checkpoint
					seconds, _ := conduct(b, s, 30)
					return seconds
				}
				freshDelta++ // no study before had this δ, and so none has filled the stand-in
				fresh := strings.Replace(a.private, "1e-5", fmt.Sprintf("%ge-5", 1+1e-6*float64(freshDelta)), 1)
				first := spent(fresh, 1) / spent("", 1)
				var computed, reported float64
				for seed := uint64(2); b.Loop(); seed++ {
					computed += spent(fresh, seed)
					reported += spent("", seed)
				}
				b.ReportMetric(computed/float64(b.N), "cpu-s/op")
				b.ReportMetric(computed/reported, "x-reported")
				b.ReportMetric(first, "x-first")
			})
		}
	}
}

// BenchmarkStopping is a study of 30 runs that report every epoch, and the same study without early
// stopping. It reports the processor time of the first, the share of it that the second does without, and
// the share of epochs after the server said stop. Workers let runs go on, so that both have the same runs.
func BenchmarkStopping(b *testing.B) {
	spent := func(seed uint64, disabled bool) (seconds, stopped float64) {
		s := trainingSpec(b, accountants[0].private, seed)
		s.CheckpointParameter, s.DisableEarlyStopping = "epochs", disabled
		return conduct(b, s, 30)
	}
	var with, without, stopped float64
	for seed := uint64(1); b.Loop(); seed++ {
		spent(seed, true) // fills the stand-in for ε that the search uses
		seconds, share := spent(seed, false)
		with, stopped = with+seconds, stopped+share
		seconds, _ = spent(seed, true)
		without += seconds
	}
	b.ReportMetric(with/float64(b.N), "cpu-s/op")
	b.ReportMetric(1-without/with, "share-stopping")
	b.ReportMetric(stopped/float64(b.N), "epochs-after-stop")
}

// BenchmarkFirst is the first suggestions on a server that has not seen the accounting of its study before: the
// initial one, and the first by a model. It reports their processor time, and how many times as much that is as for
// the same two suggestions of the next study, for which the stand-in for ε is filled.
func BenchmarkFirst(b *testing.B) {
	for _, a := range accountants {
		b.Run(a.name, func(b *testing.B) {
			var first, next [2]float64
			for seed := uint64(1); b.Loop(); seed++ {
				freshDelta++
				fresh := strings.Replace(a.private, "1e-5", fmt.Sprintf("%ge-5", 1+1e-6*float64(freshDelta)), 1)
				for _, spent := range []*[2]float64{&first, &next} {
					seconds := firstSuggestions(b, fresh, seed)
					for i := range spent {
						spent[i] += seconds[i]
					}
				}
			}
			for i, name := range []string{"initial", "modelled"} {
				b.ReportMetric(first[i]/float64(b.N), name+"-cpu-s")
				b.ReportMetric(first[i]/next[i], name+"-x-next")
			}
		})
	}
}

// firstSuggestions returns the processor seconds of the first two suggestions of a study, of which the second is by
// a model that begins with public runs.
func firstSuggestions(b *testing.B, private string, seed uint64) (seconds [2]float64) {
	b.Helper()
	s := trainingSpec(b, private, seed)
	s.Algorithm.DpSgdFeatures = &dparetov1.DpSgdFeatures{LearningRate: "rate", ClippingNorm: "clip"}
	s.CheckpointParameter = "epochs"
	service := enginetest.New(b, enginetest.Options{})
	defer service.Close()
	require.NoError(b, require.ErrOf(service.CreateStudy(b.Context(), &dparetov1.CreateStudyRequest{StudyId: "training", Study: &dparetov1.Study{Spec: s}})))
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range seconds {
		before := processorSeconds(b)
		resp, err := service.SuggestTrials(b.Context(), &dparetov1.SuggestTrialsRequest{Parent: resource.StudyName("training"), WorkerId: "w"})
		require.NoError(b, err)
		seconds[i] = processorSeconds(b) - before
		trial := resp.GetTrials()[0]
		t := trainedAs(trial, rng)
		_, err = service.CompleteTrial(b.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: t.after(t.epochs, false)},
		})
		require.NoError(b, err)
	}
	return seconds
}
