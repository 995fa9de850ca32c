package outputperturbation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// The declared domains and δ are from the example of Avent et al. (2020), Figure 1.
func TestDeclaration(t *testing.T) {
	for projection, radius := range map[Projection]string{
		NoProjection:        "",
		PublishedProjection: "1.0 / regularization",
		SmallProjection:     "math.least(1.0 / regularization, math.sqrt(2.0 * math.log(2.0) / regularization))",
	} {
		d := newTrainer(t, func(p *dataset.Parts, o *Options) {
			p.Validation, o.Projection = dataset.Generated(200, 3), projection
		}).Declaration()
		got := make(map[string][2]float64)
		for _, p := range d.Parameters {
			got[p.Name] = [2]float64{p.Min, p.Max}
		}
		want := map[string][2]float64{"epochs": {1, 10}, "regularization": {1e-4, 1}, "standard_deviation": {0.1, 10}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("domains (-want +got):\n%s", diff)
		}
		privacy := &trainer.PrivacyDeclaration{
			Mechanism: "output_perturbation", Delta: 1e-6, Adjacency: "REPLACE_ONE",
			Fields: map[string]string{
				"dataset_size": "500", "regularization": "regularization", "feature_norm": "1.0",
				"standard_deviation": "standard_deviation",
			},
		}
		if radius != "" {
			privacy.Fields["radius"] = radius
		}
		if diff := cmp.Diff(privacy, d.Privacy); diff != "" {
			t.Errorf("privacy (-want +got):\n%s", diff)
		}
		if got := d.Metrics[0].SampleSize; got != 200 {
			t.Errorf("sample size %d, want 200", got)
		}
	}
}
