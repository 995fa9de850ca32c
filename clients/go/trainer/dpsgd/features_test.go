package dpsgd

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

// imageParts returns parts of made-up images of 12 x 12.
func imageParts() *dataset.Parts {
	return &dataset.Parts{Train: digits(120, 144, 1), Validation: digits(30, 144, 2), Test: digits(40, 144, 3)}
}

// A run on histograms is one on a dataset of histograms, whether the setting or the parameter asks for them; its
// mechanism is that of a run on pixels.
func TestFeaturesAreOfTheDataset(t *testing.T) {
	parts, histograms := imageParts(), imageParts()
	for _, part := range []**dataset.Dataset{&histograms.Train, &histograms.Validation, &histograms.Test} {
		var err error
		*part, err = dataset.HOG(*part)
		require.NoError(t, err)
	}
	p := trainer.Parameters{
		ParameterEpochs: int64(3), ParameterLotSize: int64(30), ParameterLearningRate: 1.0, ParameterClippingNorm: 1.0, ParameterNoiseMultiplier: 2.0,
	}
	chosen := trainer.Parameters{ParameterFeatures: string(HOG)}
	maps.Copy(chosen, p)
	train := func(parts *dataset.Parts, f Features, p trainer.Parameters) (map[string][]float64, any) {
		made, err := New(parts, Options{Model: model.Spec{Kind: model.SoftmaxRegression}, Features: f})
		require.NoError(t, err)
		m, err := made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: 2, Seed: new(uint64(4))}, nil)
		require.NoError(t, err)
		mechanism, err := made.Mechanism(p)
		require.NoError(t, err)
		return m.Metrics, mechanism
	}
	want, mechanism := train(histograms, Raw, p)
	pixels, _ := train(parts, Raw, p)
	if cmp.Equal(pixels, want) {
		t.Error("pixels and histograms give the same metrics")
	}
	for _, tt := range []struct {
		f Features
		p trainer.Parameters
	}{{HOG, p}, {"", chosen}} {
		got, same := train(parts, tt.f, tt.p)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("features %q, parameters %v (-want +got):\n%s", tt.f, tt.p, diff)
		}
		if diff := cmp.Diff(mechanism, same); diff != "" {
			t.Errorf("mechanism (-want +got):\n%s", diff)
		}
	}
}

// Exchanging one record exchanges one row of histograms, so that what clipping bounds for rows it bounds for records.
func TestNeighboursHaveNeighbouringFeatures(t *testing.T) {
	d, other := digits(9, 144, 1), digits(9, 144, 1)
	const changed = 4
	copy(other.Dense[changed*144:(changed+1)*144], digits(1, 144, 7).Dense)
	first, err := dataset.HOG(d)
	require.NoError(t, err)
	second, err := dataset.HOG(other)
	require.NoError(t, err)
	for i := range d.Rows {
		_, a := first.Row(i)
		_, b := second.Row(i)
		if cmp.Equal(a, b) != (i != changed) {
			t.Errorf("row %d: equal is %t", i, cmp.Equal(a, b))
		}
	}
}

func TestFeaturesAreRefused(t *testing.T) {
	own := imageParts()
	own.Train.FeatureNorm = 1
	table := &dataset.Parts{Train: dataset.Generated(30, 1), Test: dataset.Generated(30, 2)}
	for _, tt := range []struct {
		parts *dataset.Parts
		want  string
	}{
		{own, "features hog are for images, dataset digits has a schema"},
		{table, "has rows of 123 features, want the pixels of square images"},
	} {
		if _, err := New(tt.parts, Options{Model: model.Spec{Kind: model.SoftmaxRegression}, Features: HOG}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
		made, err := New(tt.parts, Options{Model: model.Spec{Kind: model.SoftmaxRegression}})
		require.NoError(t, err)
		_, err = made.Mechanism(trainer.Parameters{
			ParameterEpochs: int64(3), ParameterLotSize: int64(30), ParameterLearningRate: 1.0, ParameterClippingNorm: 1.0, ParameterNoiseMultiplier: 2.0,
			ParameterFeatures: string(HOG),
		})
		if err == nil || !strings.Contains(err.Error(), `parameter "features" is "hog": `) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}
