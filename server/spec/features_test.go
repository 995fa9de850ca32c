package spec

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest/dpsgd"
	"github.com/dpareto/dpareto/suggest/space"
)

// trained is a study of DP-SGD. Its mechanism and adjacency are to be put in.
const trained = `{
	"parameters": [
		{"id": "epochs", "scale": "SCALE_LOG", "integer_domain": {"min": 1, "max": 64}},
		{"id": "optimizer", "categorical_domain": {"categories": ["plain", "momentum"]}},
		{"id": "lot", "scale": "SCALE_LOG", "integer_domain": {"min": 8, "max": 512}},
		{"id": "log_rate", "scale": "SCALE_LINEAR", "double_domain": {"min": -7, "max": 0}},
		{"id": "clip", "scale": "SCALE_LOG", "double_domain": {"min": 0.1, "max": 4}},
		{"id": "sigma", "scale": "SCALE_LOG", "double_domain": {"min": 0.1, "max": 16}},
		{"id": "late", "scale": "SCALE_LOG", "double_domain": {"min": 0.1, "max": 1}, "condition": {"parent": "optimizer", "values": [{"string_value": "momentum"}]}}
	],
	"metrics": [
		{"id": "error", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOGIT", "reference_value": 1, "reported": {}},
		{"id": "epsilon", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOG", "reference_value": 10, "computed": {"privacy":
			{"delta": 1e-5, "adjacency": "$ADJACENCY", "dp_sgd": {"noise_multiplier": "sigma", $DRAWN}}}}
	],
	"checkpoint_parameter": "epochs",
	"algorithm": {"dp_sgd_features": {"learning_rate": "math.exp(log_rate)", "clipping_norm": "clip * double(epochs)"}}
}`

// trainedStudy returns that study with a way to draw lots, after a change.
func trainedStudy(t *testing.T, adjacency, drawn string, change func(*dparetov1.StudySpec)) (*Study, error) {
	t.Helper()
	message := new(dparetov1.StudySpec)
	text := strings.NewReplacer("$ADJACENCY", adjacency, "$DRAWN", drawn).Replace(trained)
	require.NoError(t, protojson.Unmarshal([]byte(text), message))
	change(message)
	return Compile("spec", message)
}

// The features are those of the mechanism, whatever its unit of length and its way to draw lots. Parameters
// that are alone in an expression are replaced.
func TestFeatures(t *testing.T) {
	q := space.Point{10, 1, 64, -2, 0.5, 3, 0.2}
	for name, c := range map[string]struct {
		adjacency, drawn string
		noise, steps     float64
		uses, replaced   int
	}{
		"fixed size": {"ADJACENCY_REPLACE_ONE", `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`, 6, 1000, 5, 4},
		"steps":      {"ADJACENCY_REPLACE_ONE", `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "steps": "50 * epochs"`, 6, 500, 5, 4},
		"Poisson": {
			"ADJACENCY_ADD_REMOVE", `"sampling": "SAMPLING_POISSON", "convention": "CONVENTION_OPACUS", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`,
			3, 1000, 5, 4,
		},
		"rate": {
			"ADJACENCY_ADD_REMOVE", `"sampling": "SAMPLING_POISSON", "dataset_size": "6400", "sampling_probability": "double(lot) / 6400.0", "steps": "100 * epochs"`,
			3, 1000, 5, 4,
		},
	} {
		study, err := trainedStudy(t, c.adjacency, c.drawn, func(*dparetov1.StudySpec) {})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f := study.Problem.Features
		got := make([]float64, f.Count)
		f.Evaluate(got, q)
		want := dpsgd.Scale(dpsgd.Run{
			LearningRate: math.Exp(-2), ClippingNorm: 0.5 * 10, Noise: c.noise, LotSize: 64, Steps: c.steps,
		}.Coordinates(false))
		for k, x := range got {
			if math.Abs(x-want[k]) > 1e-12 {
				t.Errorf("%s: feature %d is %g, want %g", name, k, x, want[k])
			}
		}
		if len(f.Parameters) != c.uses || len(f.Replaced) != c.replaced {
			t.Errorf("%s: depend on %v, replace %v", name, f.Parameters, f.Replaced)
		}
		if got := study.Problem.InputDim(); got != 9 { // 2 categories, clip, late, and 5 features
			t.Errorf("%s: %d inputs", name, got)
		}
	}
}

// A parameter that the features do not determine stays an input.
func TestUndeterminedParametersStay(t *testing.T) {
	const drawn = `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`
	for rate, replaced := range map[string]int{
		"math.exp(log_rate)": 4, "log_rate < -3.0 ? 0.01 : 0.1": 3, "math.abs(log_rate + 3.0) + 0.1": 3, "math.exp(-log_rate)": 4,
	} {
		study, err := trainedStudy(t, "ADJACENCY_REPLACE_ONE", drawn, func(s *dparetov1.StudySpec) { s.Algorithm.DpSgdFeatures.LearningRate = rate })
		require.NoError(t, err)
		if got := study.Problem.Features.Replaced; len(got) != replaced {
			t.Errorf("%s: %v are replaced, want %d", rate, got, replaced)
		}
	}
}

// A study without roles has no features.
func TestNoFeatures(t *testing.T) {
	study, err := trainedStudy(t, "ADJACENCY_REPLACE_ONE", `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`,
		func(s *dparetov1.StudySpec) { s.Algorithm.DpSgdFeatures = nil })
	if err != nil || study.Problem.Features != nil {
		t.Errorf("%v, %v", study, err)
	}
}

func TestFeaturesAreRefused(t *testing.T) {
	const fixed = `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`
	const field = "spec.algorithm.dp_sgd_features"
	for name, c := range map[string]struct {
		drawn, want string
		change      func(*dparetov1.DpSgdFeatures)
	}{
		"no rate":     {fixed, field + ".learning_rate", func(f *dparetov1.DpSgdFeatures) { f.LearningRate = "" }},
		"no norm":     {fixed, field + ".clipping_norm", func(f *dparetov1.DpSgdFeatures) { f.ClippingNorm = "klip" }},
		"optimizer":   {fixed, field + ".optimizer: is unknown", func(f *dparetov1.DpSgdFeatures) { f.Optimizer = 7 }},
		"conditional": {fixed, `parameter "late", which has a condition`, func(f *dparetov1.DpSgdFeatures) { f.LearningRate = "late" }},
		"data set":    {fixed, field + `.without_datasets[0]: must be one of adult, `, func(f *dparetov1.DpSgdFeatures) { f.WithoutDatasets = []string{"imagenet"} }},
		"categories":  {fixed, `parameter "optimizer", which has categories`, func(f *dparetov1.DpSgdFeatures) { f.LearningRate = "optimizer == 'plain' ? 0.1 : 0.2" }},
		"no records": {
			`"sampling": "SAMPLING_POISSON", "sampling_probability": "double(lot) / 6400.0", "steps": "100 * epochs"`,
			field + ": needs a metric", func(*dparetov1.DpSgdFeatures) {},
		},
	} {
		adjacency := "ADJACENCY_REPLACE_ONE"
		if c.drawn != fixed {
			adjacency = "ADJACENCY_ADD_REMOVE"
		}
		_, err := trainedStudy(t, adjacency, c.drawn, func(s *dparetov1.StudySpec) { c.change(s.GetAlgorithm().GetDpSgdFeatures()) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Models begin with public runs, unless the study refuses them or names prior studies.
func TestPublicRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*dparetov1.StudySpec)
		want   bool
	}{
		"default": {func(*dparetov1.StudySpec) {}, true},
		"refused": {func(s *dparetov1.StudySpec) { s.Algorithm.DpSgdFeatures.WithoutPublicRuns = true }, false},
		"prior":   {func(s *dparetov1.StudySpec) { s.PriorStudies = []string{"studies/earlier"} }, false},
		"another transform": {
			func(s *dparetov1.StudySpec) { s.Metrics[0].Transform = dparetov1.Transform_TRANSFORM_IDENTITY }, false,
		},
		"another optimizer": {
			func(s *dparetov1.StudySpec) {
				s.Algorithm.DpSgdFeatures.Optimizer = dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_NORMALIZED
			}, true,
		},
		"some data": {func(s *dparetov1.StudySpec) { s.Algorithm.DpSgdFeatures.WithoutDatasets = []string{"adult"} }, true},
	} {
		study, err := trainedStudy(t, "ADJACENCY_REPLACE_ONE", `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`, c.change)
		require.NoError(t, err)
		if got := study.PublicDatasets(); study.Problem.Expected() != c.want || (len(got) > 0) != c.want || name == "some data" && slices.Contains(got, "adult") {
			t.Errorf("%s: expected %t, data sets %q", name, study.Problem.Expected(), got)
		}
		first := 6
		if c.want {
			first = 1
		}
		if got := study.InitialTrials(); got != first {
			t.Errorf("%s: %d initial trials, want %d", name, got, first)
		}
	}
}

// A study that names its learning rate and clipping norm in the mechanism has features, and says so in its spec.
func TestFeaturesByDefault(t *testing.T) {
	const (
		fixed = `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs", `
		names = fixed + `"learning_rate": "math.exp(log_rate)", "clipping_norm": "clip"`
		on    = `{"learning_rate": "math.exp(log_rate)", "clipping_norm": "clip"`
	)
	for name, c := range map[string]struct {
		drawn, algorithm, want string
		change                 func(*dparetov1.StudySpec)
	}{
		"no algorithm":           {drawn: names, want: on + `}`},
		"by name":                {drawn: names, algorithm: `{"name": "ALGORITHM_DEFAULT"}`, want: on + `}`},
		"fixed norm":             {drawn: fixed + `"learning_rate": "0.1", "clipping_norm": "1"`, want: `{"learning_rate": "0.1", "clipping_norm": "1"}`},
		"normalized":             {drawn: names + `, "optimizer": "DP_SGD_OPTIMIZER_NORMALIZED"`, want: on + `, "optimizer": "DP_SGD_OPTIMIZER_NORMALIZED"}`},
		"the rest":               {drawn: names, algorithm: `{"dp_sgd_features": {"without_datasets": ["adult"]}}`, want: on + `, "without_datasets": ["adult"]}`},
		"the rest of EHVI":       {drawn: names, algorithm: `{"name": "ALGORITHM_EHVI", "dp_sgd_features": {}}`, want: on + `}`},
		"optimizer":              {drawn: names, algorithm: `{"dp_sgd_features": {"optimizer": "DP_SGD_OPTIMIZER_NORMALIZED"}}`, want: on + `, "optimizer": "DP_SGD_OPTIMIZER_NORMALIZED"}`},
		"the same":               {drawn: names, algorithm: `{"dp_sgd_features": ` + on + `}}`, want: on + `}`},
		"disabled":               {drawn: names, algorithm: `{"dp_sgd_features": {"disabled": true}}`, want: `{"disabled": true}`},
		"method to compare with": {drawn: names, algorithm: `{"name": "ALGORITHM_DPARETO"}`},
		"no names":               {drawn: strings.TrimSuffix(fixed, ", ")},
		"part of a composition": {drawn: names, want: on + `}`, change: func(s *dparetov1.StudySpec) {
			privacy := s.GetMetrics()[1].GetComputed().GetPrivacy()
			gaussian := &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "100.0"}}}
			other := &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
				Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE, DatasetSize: "100", BatchSize: "10", NoiseMultiplier: "100.0",
				Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "1"},
			}}}
			named := &dparetov1.PrivacySpec{Mechanism: privacy.GetMechanism()}
			privacy.Mechanism = &dparetov1.PrivacySpec_Composition{Composition: &dparetov1.CompositionMechanism{
				Parts: []*dparetov1.CompositionMechanism_Part{{Mechanism: gaussian}, {Mechanism: other}, {Mechanism: named}},
			}}
		}},
	} {
		study, err := trainedStudy(t, "ADJACENCY_REPLACE_ONE", c.drawn, func(s *dparetov1.StudySpec) {
			s.Algorithm = nil
			if c.algorithm != "" {
				s.Algorithm = new(dparetov1.AlgorithmSpec)
				require.NoError(t, protojson.Unmarshal([]byte(c.algorithm), s.GetAlgorithm()))
			}
			if c.change != nil {
				c.change(s)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want *dparetov1.DpSgdFeatures
		if c.want != "" {
			want = new(dparetov1.DpSgdFeatures)
			require.NoError(t, protojson.Unmarshal([]byte(c.want), want))
		}
		got := study.Spec.GetAlgorithm().GetDpSgdFeatures()
		if !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		isOn := want != nil && !want.GetDisabled()
		if (study.Problem.Features != nil) != isOn {
			t.Errorf("%s: features %v", name, study.Problem.Features)
		}
		if again := WithDefaults(study.Spec); again != study.Spec {
			t.Errorf("%s: the stored spec is not final: %v", name, again)
		}
		if isOn {
			q, f := space.Point{10, 1, 64, -2, 0.5, 3, 0.2}, study.Problem.Features
			coordinates := make([]float64, f.Count)
			if f.Evaluate(coordinates, q); slices.ContainsFunc(coordinates, math.IsNaN) {
				t.Errorf("%s: features %v", name, coordinates)
			}
			run := dpsgd.Run{LearningRate: math.Exp(-2), ClippingNorm: 0.5, Noise: 6, LotSize: 64, Steps: 1000}
			if name == "fixed norm" {
				run.LearningRate, run.ClippingNorm = 0.1, 1
			}
			normalized := want.GetOptimizer() == dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_NORMALIZED
			for k, x := range dpsgd.Scale(run.Coordinates(normalized)) {
				if math.Abs(x-coordinates[k]) > 1e-12 {
					t.Errorf("%s: feature %d is %g, want %g", name, k, coordinates[k], x)
				}
			}
		}
	}
}

// A private study begins without public runs, whose records may be its own, unless it asks for features itself.
func TestPrivateFeaturesHaveNoPublicRuns(t *testing.T) {
	for _, explicit := range []bool{false, true} {
		s := new(dparetov1.StudySpec)
		text := strings.NewReplacer("$ADJACENCY", "ADJACENCY_REPLACE_ONE", "$DRAWN", `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot",
			"epochs": "epochs", "learning_rate": "0.1", "clipping_norm": "clip"`).Replace(trained)
		require.NoError(t, protojson.Unmarshal([]byte(text), s))
		s.PrivateMode, s.Algorithm.DpSgdFeatures = new(dparetov1.PrivateModeSpec), nil
		if explicit {
			s.Algorithm.DpSgdFeatures = new(dparetov1.DpSgdFeatures)
		}
		if got := WithDefaults(s).GetAlgorithm().GetDpSgdFeatures(); got.GetLearningRate() != "0.1" || got.GetWithoutPublicRuns() == explicit {
			t.Errorf("explicit %t: %v", explicit, got)
		}
	}
}

func TestNamesOfTheMechanismAreRefused(t *testing.T) {
	const (
		fixed     = `"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "6400", "batch_size": "lot", "epochs": "epochs"`
		poisson   = `"sampling": "SAMPLING_POISSON", "sampling_probability": "double(lot) / 6400.0", "steps": "100 * epochs"`
		mechanism = "spec.metrics[1].computed.privacy.dp_sgd"
		features  = "spec.algorithm.dp_sgd_features"
	)
	named := func(rate, norm string) string {
		return `, "learning_rate": "` + rate + `", "clipping_norm": "` + norm + `"`
	}
	for name, c := range map[string]struct {
		drawn, algorithm, want string
	}{
		"no norm":           {fixed + named("0.1", ""), "", mechanism + ".clipping_norm: must be set with learning_rate"},
		"no rate":           {fixed + named("", "clip"), "", mechanism + ".learning_rate: must be set with clipping_norm"},
		"unknown name":      {fixed + named("lr", "clip"), "", mechanism + ".learning_rate: "},
		"unknown, no model": {fixed + named("0.1", "C"), `{"name": "ALGORITHM_RANDOM"}`, mechanism + ".clipping_norm: "},
		"not a number":      {fixed + named("optimizer", "clip"), "", mechanism + ".learning_rate: "},
		"no records":        {poisson + named("0.1", "clip"), "", mechanism + ".dataset_size: must be set with learning_rate"},
		"lone optimizer":    {fixed + `, "optimizer": 2`, "", mechanism + ".optimizer: must be unset without"},
		"unknown optimizer": {fixed + named("0.1", "clip") + `, "optimizer": 7`, "", mechanism + ".optimizer: is unknown"},
		"condition":         {fixed + named("late", "clip"), "", mechanism + `: must not depend on parameter "late", which has a condition: leave learning_rate and clipping_norm out`},
		"categories":        {fixed + named("optimizer == 'plain' ? 0.1 : 0.2", "clip"), "", mechanism + `: must not depend on parameter "optimizer", which has categories`},
		"another rate":      {fixed + named("0.1", "clip"), `{"dp_sgd_features": {"learning_rate": "0.2"}}`, features + `.learning_rate: must be "0.1" as in metrics[1].computed.privacy.dp_sgd, or unset, is "0.2"`},
		"another norm":      {fixed + named("0.1", "clip"), `{"dp_sgd_features": {"clipping_norm": "1.0"}}`, features + `.clipping_norm: must be "clip"`},
		"another optimizer": {
			fixed + named("0.1", "clip") + `, "optimizer": 2`, `{"dp_sgd_features": {"optimizer": 1}}`,
			features + ".optimizer: must be DP_SGD_OPTIMIZER_NORMALIZED",
		},
		"disabled and more": {fixed, `{"dp_sgd_features": {"disabled": true, "learning_rate": "0.1"}}`, features + ": must have no other field with disabled"},
	} {
		adjacency := "ADJACENCY_REPLACE_ONE"
		if strings.HasPrefix(c.drawn, poisson) {
			adjacency = "ADJACENCY_ADD_REMOVE"
		}
		_, err := trainedStudy(t, adjacency, c.drawn, func(s *dparetov1.StudySpec) {
			s.Algorithm = new(dparetov1.AlgorithmSpec)
			if c.algorithm != "" {
				require.NoError(t, protojson.Unmarshal([]byte(c.algorithm), s.GetAlgorithm()))
			}
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
