package objectiveperturbation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/privacy"
)

func TestDeclaration(t *testing.T) {
	for _, tt := range []struct {
		loss      linear.Loss
		rule      privacy.ObjectiveCalibration
		curvature string
		name      string
		unit      string
	}{
		{linear.Logistic{}, privacy.RankOne, "2.5e-01", "RANK_ONE", "nats"},
		{linear.Huber{Width: 0.1}, privacy.Chaudhuri, "5e+00", "CHAUDHURI", ""},
		{linear.Huber{Width: 2}, privacy.ContinuousChaudhuri, "2.5e-01", "CONTINUOUS", ""},
	} {
		d := newTrainer(t, func(p *dataset.Parts, o *Options) {
			p.Validation, o.Loss, o.Calibration = dataset.Generated(200, 3), tt.loss, tt.rule
		}).Declaration()
		domains := map[string][2]float64{"target_epsilon": {0.05, 10}, "regularization": {1e-6, 0.1}}
		want := &trainer.PrivacyDeclaration{
			Mechanism: "objective_perturbation", Adjacency: "REPLACE_ONE",
			Fields: map[string]string{
				"epsilon": "target_epsilon", "dataset_size": "500", "regularization": "regularization",
				"curvature": tt.curvature, "calibration": tt.name,
			},
		}
		if tt.rule == privacy.RankOne {
			domains["regularizer_share"] = [2]float64{0.01, 0.5}
			want.Fields["split"] = "regularizer_share"
		}
		if diff := cmp.Diff(want, d.Privacy); diff != "" {
			t.Errorf("%s: privacy (-want +got):\n%s", tt.name, diff)
		}
		got := make(map[string][2]float64)
		for _, p := range d.Parameters {
			got[p.Name] = [2]float64{p.Min, p.Max}
		}
		if diff := cmp.Diff(domains, got); diff != "" {
			t.Errorf("%s: domains (-want +got):\n%s", tt.name, diff)
		}
		if m := d.Metrics; m[0].SampleSize != 200 || m[1].Unit != tt.unit {
			t.Errorf("%s: sample size %d, unit of the loss %q, want 200 and %q", tt.name, m[0].SampleSize, m[1].Unit, tt.unit)
		}
	}
}
