package fitted

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

// schema has three numeric columns and some labels.
func schema(labels ...string) *table.Schema {
	s := &table.Schema{Rows: table.Public, Label: table.Label{Column: "y", Values: labels}}
	for _, name := range []string{"a", "b", "c"} {
		s.Features = append(s.Features, table.Feature{Column: name, Range: []float64{-1, 1}})
	}
	return s
}

// examples returns rows whose class is a function of the features.
func examples(rows, classes int, sparse bool) *dataset.Dataset {
	d := &dataset.Dataset{Rows: rows, Dim: 3, Classes: classes, FeatureNorm: math.Sqrt(3)}
	if sparse {
		d.RowStart = []int{0}
	}
	for i := range rows {
		row := []float32{float32(i%7)/3 - 1, float32(i%5)/2 - 1, float32(i%3) - 1}
		class := int(row[0]+row[1]+3) * classes / 6
		label := float32(class)
		if classes == 2 {
			label = 2*label - 1
		}
		d.Labels = append(d.Labels, label)
		if !sparse {
			d.Dense = append(d.Dense, row...)
			continue
		}
		for k, v := range row {
			if v != 0 {
				d.Indices, d.Values = append(d.Indices, int32(k)), append(d.Values, v)
			}
		}
		d.RowStart = append(d.RowStart, len(d.Indices))
	}
	return d
}

// train returns a model that was trained on examples, and its error on them.
func train(t *testing.T, spec model.Spec, d *dataset.Dataset) (*Model, float64) {
	t.Helper()
	made, err := dpsgd.New(&dataset.Parts{Train: d, Test: d}, dpsgd.Options{Model: spec, Optimizer: dpsgd.Adam})
	require.NoError(t, err)
	var layers [][]trainer.Layer
	m, err := made.Train(t.Context(), trainer.Run{
		Parameters: trainer.Parameters{"epochs": int64(5), "lot_size": int64(20), "learning_rate": 0.05, "clipping_norm": 1.0, "noise_multiplier": 0.01},
		Replicates: 2, Seed: new(uint64(1)),
		Fitted: func(r int, l []trainer.Layer) {
			if r != len(layers) {
				t.Errorf("replicate %d comes as number %d", r, len(layers))
			}
			layers = append(layers, l)
		},
	}, nil)
	require.NoError(t, err)
	labels := []string{"no", "yes", "perhaps"}[:d.Classes]
	return &Model{Card: Card{Format: Format, Model: spec.Kind, Schema: schema(labels...)}, Layers: layers[1]}, m.Metrics["error"][1]
}

// A model predicts as it did when it was trained, also after it was written and read.
func TestModelPredictsAsTrained(t *testing.T) {
	for _, tt := range []struct {
		spec    model.Spec
		classes int
	}{
		{model.Spec{Kind: model.LogisticRegression}, 2}, {model.Spec{Kind: model.LinearSVM}, 2}, {model.Spec{Kind: model.HuberSVM}, 2},
		{model.Spec{Kind: model.SoftmaxRegression}, 2}, {model.Spec{Kind: model.SoftmaxRegression}, 3},
		{model.Spec{Kind: model.MLP, Hidden: []int{6, 5}}, 3},
	} {
		for _, sparse := range []bool{false, true} {
			d := examples(300, tt.classes, sparse)
			trained, wantError := train(t, tt.spec, d)
			folder := filepath.Join(t.TempDir(), "model")
			require.NoError(t, trained.Write(folder))
			read, err := Read(folder)
			require.NoError(t, err)
			if diff := cmp.Diff(trained, read); diff != "" {
				t.Errorf("%s (-written +read):\n%s", tt.spec.Kind, diff)
			}
			wrong := 0
			for i, p := range read.Predict(d) {
				class := int(d.Labels[i])
				if tt.classes == 2 {
					class = (class + 1) / 2
				}
				if p.Class != class {
					wrong++
				}
				if p.Probabilities == nil {
					continue
				}
				var sum float64
				for _, x := range p.Probabilities {
					sum += x
				}
				if math.Abs(sum-1) > 1e-12 || p.Probabilities[p.Class] < slices.Max(p.Probabilities) {
					t.Fatalf("%s: prediction %+v", tt.spec.Kind, p)
				}
			}
			if got := float64(wrong) / float64(d.Rows); got != wantError || got > 0.5 {
				t.Errorf("%s, sparse %t: error %v, trained with %v", tt.spec.Kind, sparse, got, wantError)
			}
		}
	}
}

// The layers are those of the trained weights: output k is the sum over Weights[i·Out+k], and files have them
// transposed.
func TestSafetensors(t *testing.T) {
	file := encodeTensors([]trainer.Layer{{In: 2, Out: 3, Weights: []float64{1, 2, 3, 4, 5, 6}, Biases: []float64{7, 8, 9}}})
	length := binary.LittleEndian.Uint64(file)
	const header = `{"layers.0.bias":{"dtype":"F64","shape":[3],"data_offsets":[48,72]},"layers.0.weight":{"dtype":"F64","shape":[3,2],"data_offsets":[0,48]}}`
	if got := strings.TrimRight(string(file[8:8+length]), " "); got != header || length%8 != 0 {
		t.Errorf("header of %d bytes: %s", length, got)
	}
	for i, want := range []float64{1, 4, 2, 5, 3, 6, 7, 8, 9} {
		if got := math.Float64frombits(binary.LittleEndian.Uint64(file[8+int(length)+8*i:])); got != want {
			t.Errorf("value %d is %v, want %v", i, got, want)
		}
	}
}

func TestBrokenModels(t *testing.T) {
	good := &Model{Card: Card{Format: Format, Model: model.LogisticRegression, Schema: schema("no", "yes")},
		Layers: []trainer.Layer{{In: 3, Out: 1, Weights: []float64{1, 2, 3}, Biases: []float64{4}}}}
	replaceHeader := func(old, replacement string) func([]byte) []byte {
		return func(file []byte) []byte { return bytes.Replace(file, []byte(old), []byte(replacement), 1) }
	}
	for name, tt := range map[string]struct {
		weights func([]byte) []byte
		card    [2]string
		want    string
	}{
		"empty":        {func([]byte) []byte { return nil }, [2]string{}, "ends within the length of its header"},
		"cut":          {func(f []byte) []byte { return f[:20] }, [2]string{}, "ends within its header"},
		"cut values":   {func(f []byte) []byte { return f[:len(f)-1] }, [2]string{}, "layers.0.bias: must be a tensor of 1 dimensions"},
		"no JSON":      {replaceHeader("{", "["), [2]string{}, "header:"},
		"shape":        {replaceHeader("[1,3]", "[9,9]"), [2]string{}, "layers.0.weight: has an impossible shape"},
		"negative":     {replaceHeader("[1,3]", "[1,-3]"), [2]string{}, "layers.0.weight: has an impossible shape"},
		"type":         {replaceHeader("F64", "F32"), [2]string{}, "and type F64 within the file"},
		"offsets":      {replaceHeader("[0,24]", "[8,24]"), [2]string{}, "within the file"},
		"infinite":     {func(f []byte) []byte { return append(f[:len(f)-8], 0, 0, 0, 0, 0, 0, 0xf0, 0x7f) }, [2]string{}, "has a value that is not finite"},
		"other schema": {nil, [2]string{`"column": "c"`, `"column": "b"`}, "columns must be different"},
		"other model":  {nil, [2]string{"logistic-regression", "softmax-regression"}, "1 layers with 1 outputs are no softmax-regression"},
		"no model":     {nil, [2]string{"logistic-regression", "tree"}, `model "tree" is unknown`},
		"other format": {nil, [2]string{Format, "other"}, `format must be dpareto-model-1, is "other"`},
		"missing":      {nil, [2]string{`"indicator"`, ``}, ""},
	} {
		folder := filepath.Join(t.TempDir(), "model")
		require.NoError(t, good.Write(folder))
		for file, change := range map[string]func([]byte) []byte{WeightsFile: tt.weights, CardFile: replaceHeader(tt.card[0], tt.card[1])} {
			path := filepath.Join(folder, file)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			if change == nil || file == CardFile && tt.card[0] == "" {
				continue
			}
			require.NoError(t, os.WriteFile(path, change(content), 0o600))
		}
		_, err := Read(folder)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
		}
	}
	if err := good.Write(t.TempDir()); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if err := (&Model{Card: good.Card}).Write(t.TempDir()); err == nil || !strings.Contains(err.Error(), "0 layers") {
		t.Errorf("no layers: %v", err)
	}
}

// A regression predicts numbers within the range of the label, in its unit.
func TestModelPredictsNumbers(t *testing.T) {
	s := schema()
	s.Label.Range = []float64{100, 300}
	m := &Model{
		Card:   Card{Format: Format, Model: model.LinearRegression, Schema: s},
		Layers: []trainer.Layer{{In: 3, Out: 1, Weights: []float64{1, 2, 0}, Biases: []float64{0.25}}},
	}
	folder := filepath.Join(t.TempDir(), "model")
	require.NoError(t, m.Write(folder))
	read, err := Read(folder)
	require.NoError(t, err)
	for i, p := range read.Predict(&dataset.Dataset{Rows: 3, Dim: 3, Dense: []float32{0, 0, 1, 0.25, 0, 0, 1, 1, 0}}) {
		if want := []float64{225, 250, 300}[i]; p.Value != want || p.Probabilities != nil {
			t.Errorf("row %d is %+v, want %v", i, p, want)
		}
	}
	m.Card.Model = model.LogisticRegression
	if err := m.validate(); err == nil || !strings.Contains(err.Error(), "does not fit the label") {
		t.Errorf("a classifier of numbers: error %v", err)
	}
}

// A schema in which no text stands for a missing value stays one: "NA" is then a category, or a mistake.
func TestNoMissingTexts(t *testing.T) {
	s := schema("no", "yes")
	s.Missing = []string{}
	m := &Model{Card: Card{Format: Format, Model: model.LogisticRegression, Schema: s}, Layers: []trainer.Layer{{In: 3, Out: 1, Weights: make([]float64, 3), Biases: make([]float64, 1)}}}
	folder := filepath.Join(t.TempDir(), "model")
	require.NoError(t, m.Write(folder))
	read, err := Read(folder)
	require.NoError(t, err)
	if texts := read.Card.Schema.MissingTexts(); len(texts) != 0 {
		t.Errorf("%q stand for missing values", texts)
	}
}
