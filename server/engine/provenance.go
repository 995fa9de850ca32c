package engine

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// provenance says how a suggestion was made by a server of some version.
func provenance(version string, from *snapshot, asked suggest.Designer, suggestion suggest.Suggestion) *dparetov1.Provenance {
	p := &dparetov1.Provenance{
		Algorithm:        suggestion.Designer,
		AlgorithmVersion: asked.Version(),
		ServerVersion:    version,
		Seed:             from.record.GetStudy().GetSeed(),
		StudyRevision:    from.revision,
		FallbackReason:   suggestion.FallbackReason,
		Conditioned:      isConditioned(asked),
	}
	if suggestion.Predictions == nil {
		return p
	}
	p.AcquisitionValue = &suggestion.Acquisition
	p.Predictions = make(map[string]*dparetov1.MetricPrediction)
	for i, objective := range from.compiled.Objectives() {
		p.Predictions[objective] = PredictionMessage(suggestion.Predictions[i])
	}
	return p
}

// PredictionMessage converts a prediction to its message.
func PredictionMessage(p suggest.Prediction) *dparetov1.MetricPrediction {
	return &dparetov1.MetricPrediction{Median: p.Median, Lower: p.Lower, Upper: p.Upper}
}
