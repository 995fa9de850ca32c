package mechanism

import (
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// definition is a mechanism as the command line knows it.
type definition struct {
	name     string
	summary  string
	required []string // flags
	optional []string // flags
	// adjacency is the default.
	adjacency dparetov1.Adjacency
	// solveFor is the flag that is calibrated by default.
	solveFor string
	// fill sets the mechanism of a spec.
	fill func(v values, spec *dparetov1.PrivacySpec)
}

// Names of the mechanisms that other parts refer to.
const (
	dpSGDName    = "dp-sgd"
	repeatedName = "repeated-selection"
)

// definitions are all mechanisms but repeated-selection, which wraps one of them.
var definitions = []definition{
	{
		name:      dpSGDName,
		summary:   "DP-SGD, DP-Adam and every other method with clipped gradients and Gaussian noise",
		required:  []string{flagSampling, flagDatasetSize, flagBatchSize, flagNoiseMultiplier, flagEpochs},
		optional:  []string{flagSteps, flagTrainerSampling},
		adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		solveFor:  flagNoiseMultiplier,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			m := &dparetov1.DpSgdMechanism{
				Sampling:        dparetov1.Sampling(enum(v[flagSampling], "SAMPLING_", dparetov1.Sampling_value)),
				DatasetSize:     v[flagDatasetSize],
				BatchSize:       v[flagBatchSize],
				NoiseMultiplier: v[flagNoiseMultiplier],
				TrainerSampling: dparetov1.Sampling(enum(v[flagTrainerSampling], "SAMPLING_", dparetov1.Sampling_value)),
			}
			if steps := v[flagSteps]; steps != "" {
				m.Length = &dparetov1.DpSgdMechanism_Steps{Steps: steps}
			} else {
				m.Length = &dparetov1.DpSgdMechanism_Epochs{Epochs: v[flagEpochs]}
			}
			if m.GetSampling() == dparetov1.Sampling_SAMPLING_POISSON && v[flagAdjacency] == "" {
				spec.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
			}
			spec.Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: m}
		},
	},
	{
		name: "gaussian", summary: "Gaussian noise added to a vector",
		required:  []string{flagSensitivity, flagSigma},
		adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, solveFor: flagSigma,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{
				Sensitivity: v[flagSensitivity], StandardDeviation: v[flagSigma],
			}}
		},
	},
	{
		name: "laplace", summary: "Laplace noise added to a vector",
		required:  []string{flagSensitivity, flagScale},
		adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, solveFor: flagScale,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_Laplace{Laplace: &dparetov1.LaplaceMechanism{
				Sensitivity: v[flagSensitivity], Scale: v[flagScale],
			}}
		},
	},
	{
		name: "svt", summary: "the sparse vector technique: --bound positive answers, total noise scale --noise",
		required:  []string{flagBound, flagNoise},
		adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, solveFor: flagNoise,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_SparseVector{SparseVector: &dparetov1.SparseVectorMechanism{
				Cutoff: v[flagBound], NoiseScale: v[flagNoise],
			}}
		},
	},
	{
		name: "output-perturbation", summary: "Gaussian noise on the weights of a regularised linear model",
		required:  []string{flagDatasetSize, flagRegularization, flagFeatureNorm, flagSigma},
		optional:  []string{flagRadius},
		adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, solveFor: flagSigma,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_OutputPerturbation{OutputPerturbation: &dparetov1.OutputPerturbationMechanism{
				DatasetSize: v[flagDatasetSize], Regularization: v[flagRegularization], FeatureNorm: v[flagFeatureNorm],
				StandardDeviation: v[flagSigma], Radius: v[flagRadius],
			}}
		},
	},
	{
		name: "objective-perturbation", summary: "noise on the objective of a regularised linear model; shows its β and τ if the data set is described",
		required:  []string{flagEpsilon},
		optional:  []string{flagDatasetSize, flagRegularization, flagCurvature, flagCalibration, flagSplit},
		adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, solveFor: flagEpsilon,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_ObjectivePerturbation{ObjectivePerturbation: &dparetov1.ObjectivePerturbationMechanism{
				Epsilon: v[flagEpsilon], DatasetSize: v[flagDatasetSize], Regularization: v[flagRegularization],
				Curvature: v[flagCurvature], Split: v[flagSplit],
				Calibration: dparetov1.ObjectiveCalibration(enum(v[flagCalibration], "OBJECTIVE_CALIBRATION_", dparetov1.ObjectiveCalibration_value)),
			}}
		},
	},
	{
		name: "randomized-response", summary: "one answer of a record, true with a certain probability only",
		required:  []string{flagEpsilon, flagCategories},
		adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, solveFor: flagEpsilon,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_RandomizedResponse{RandomizedResponse: &dparetov1.RandomizedResponseMechanism{
				Epsilon: v[flagEpsilon], Categories: v[flagCategories],
			}}
		},
	},
	selection("exponential", "the exponential mechanism, for a choice among candidates", dparetov1.SelectionMethod_SELECTION_METHOD_EXPONENTIAL),
	selection("permute-and-flip", "permute-and-flip, for a choice among candidates", dparetov1.SelectionMethod_SELECTION_METHOD_PERMUTE_AND_FLIP),
	selection("report-noisy-max", "report noisy max, for a choice among candidates", dparetov1.SelectionMethod_SELECTION_METHOD_REPORT_NOISY_MAX),
	{
		name: "zero-concentrated", summary: "anything that is ρ-zCDP",
		required:  []string{flagRho},
		adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, solveFor: flagRho,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_ZeroConcentrated{ZeroConcentrated: &dparetov1.ZeroConcentratedMechanism{Rho: v[flagRho]}}
		},
	},
}

func selection(name, summary string, method dparetov1.SelectionMethod) definition {
	return definition{
		name: name, summary: summary,
		required:  []string{flagEpsilon},
		adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, solveFor: flagEpsilon,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			spec.Mechanism = &dparetov1.PrivacySpec_Selection{Selection: &dparetov1.SelectionMechanism{Method: method, Epsilon: v[flagEpsilon]}}
		},
	}
}

// repeated is the definition of repeated-selection over a base.
func repeated(base definition) definition {
	return definition{
		name: repeatedName, summary: base.summary,
		required:  append([]string{flagBase, flagMeanRuns}, base.required...),
		optional:  append([]string{flagLaw}, base.optional...),
		adjacency: base.adjacency, solveFor: base.solveFor,
		fill: func(v values, spec *dparetov1.PrivacySpec) {
			inner := &dparetov1.PrivacySpec{Adjacency: spec.GetAdjacency()}
			base.fill(v, inner)
			spec.Adjacency, inner.Adjacency = inner.GetAdjacency(), dparetov1.Adjacency_ADJACENCY_UNSPECIFIED
			m := &dparetov1.RepeatedSelectionMechanism{Base: inner, MeanRuns: v[flagMeanRuns]}
			if law := v[flagLaw]; law == lawPoisson {
				m.Distribution = &dparetov1.RepeatedSelectionMechanism_Poisson{Poisson: &dparetov1.PoissonDistribution{}}
			} else {
				m.Distribution = &dparetov1.RepeatedSelectionMechanism_Eta{Eta: shape(law)}
			}
			spec.Mechanism = &dparetov1.PrivacySpec_RepeatedSelection{RepeatedSelection: m}
		},
	}
}

// shape returns η of a truncated negative binomial law by its name, or as it was given.
func shape(law string) string {
	switch law {
	case "", "geometric":
		return "1"
	case "logarithmic":
		return "0"
	default:
		return law
	}
}

// enum returns the number of an enum value by its name on the command line, or 0.
func enum(name, prefix string, numbers map[string]int32) int32 {
	return numbers[prefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))]
}
