package fitted

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// Names of the files of a model.
const (
	WeightsFile = "model.safetensors"
	ONNXFile    = "model.onnx" // which other programs run; Read does not
	CardFile    = "card.json"
)

// Format is the value of Card.Format.
const Format = "dpareto-model-1"

// Card describes a model and its guarantee.
type Card struct {
	Format string `json:"format"`
	// Model is the kind.
	Model model.Kind `json:"model"`
	// Schema by which rows are encoded. The classes are its label's values, in their order.
	Schema *table.Schema `json:"schema"`
	// Trainer and Parameters of the run.
	Trainer    string             `json:"trainer"`
	Parameters trainer.Parameters `json:"parameters"`
	// Guarantee of this run for its training rows.
	Guarantee Guarantee `json:"guarantee"`
	// Search that chose the configuration.
	Search Search `json:"search"`
	// Statement states in words the scope of the guarantee, and its limits.
	Statement string `json:"statement"`
}

// Guarantee is (ε, δ) differential privacy.
type Guarantee struct {
	Epsilon   float64 `json:"epsilon"`
	Delta     float64 `json:"delta"`
	Adjacency string  `json:"adjacency"`
	// Assumptions must be true for it to hold, those first that are broken most often.
	Assumptions []Assumption `json:"assumptions"`
}

// Assumption is a clause, its topic, and its checker: server, client or nobody.
type Assumption struct {
	Text      string `json:"text"`
	Premise   string `json:"premise"`
	CheckedBy string `json:"checked_by"`
}

// Search says how a configuration was chosen.
type Search struct {
	Study    string             `json:"study"`
	Revision int64              `json:"revision"`
	Bounds   map[string]float64 `json:"bounds"`
	// Runs of the study that touched the training rows, and the ε of all of them together at Delta, as its
	// privacy ledger has it. Epsilon is nil where the ledger states none.
	Runs    int64    `json:"runs"`
	Epsilon *float64 `json:"epsilon,omitempty"`
	Delta   float64  `json:"delta,omitempty"`
	// Statement is the command that states a trial with this configuration in full. Empty if none measured it.
	Statement string `json:"statement,omitempty"`
}

// Model is a trained model.
type Model struct {
	Card   Card
	Layers []trainer.Layer
}

// validate checks that the layers fit the model and the schema of the card.
func (m *Model) validate() error {
	if m.Card.Format != Format {
		return fmt.Errorf("%s: format must be %s, is %q", CardFile, Format, m.Card.Format)
	}
	if m.Card.Schema == nil {
		return fmt.Errorf("%s: schema is required", CardFile)
	}
	if err := m.Card.Schema.Validate(); err != nil {
		return fmt.Errorf("%s: schema: %w", CardFile, err)
	}
	in, out := m.Card.Schema.Dim(), len(m.Card.Schema.Label.Values)
	switch m.Card.Model {
	case model.LogisticRegression, model.LinearSVM, model.HuberSVM, model.LinearRegression:
		out = 1
	case model.SoftmaxRegression, model.MLP:
	default:
		return fmt.Errorf("%s: model %q is unknown", CardFile, m.Card.Model)
	}
	if (m.Card.Model == model.LinearRegression) != (len(m.Card.Schema.Label.Range) > 0) {
		return fmt.Errorf("%s: model %s does not fit the label of the schema", CardFile, m.Card.Model)
	}
	for i, l := range m.Layers {
		if l.In != in || l.Out < 1 || len(l.Weights) != l.In*l.Out || len(l.Biases) != l.Out {
			return fmt.Errorf("%s: layer %d does not fit %d inputs", WeightsFile, i, in)
		}
		in = l.Out
	}
	if len(m.Layers) == 0 || in != out || m.Card.Model != model.MLP && len(m.Layers) != 1 {
		return fmt.Errorf("%s: %d layers with %d outputs are no %s of the schema", WeightsFile, len(m.Layers), in, m.Card.Model)
	}
	return nil
}

// Write writes the model into a new or empty folder.
func (m *Model) Write(folder string) error {
	if err := m.validate(); err != nil {
		return err
	}
	card, err := json.MarshalIndent(m.Card, "", "  ")
	if err != nil {
		return err
	}
	if err := CheckFolder(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // a model is made for publication
		return err
	}
	for name, content := range map[string][]byte{WeightsFile: encodeTensors(m.Layers), ONNXFile: encodeONNX(m), CardFile: append(card, '\n')} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { //nolint:gosec // see above
			return err
		}
	}
	return nil
}

// CheckFolder returns an error unless a model can be written into the folder: it is empty, or does not exist.
func CheckFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s: must be a new or empty folder", folder)
	}
	return err
}

// Read reads the model in a folder.
func Read(folder string) (*Model, error) {
	content, err := os.ReadFile(filepath.Join(folder, CardFile))
	if err != nil {
		return nil, err
	}
	m := new(Model)
	if err := json.Unmarshal(content, &m.Card); err != nil {
		return nil, fmt.Errorf("%s: %w", CardFile, err)
	}
	if content, err = os.ReadFile(filepath.Join(folder, WeightsFile)); err != nil {
		return nil, err
	}
	if m.Layers, err = decodeTensors(content); err != nil {
		return nil, fmt.Errorf("%s: %w", WeightsFile, err)
	}
	return m, m.validate()
}

// Prediction is the prediction of a model for a row.
type Prediction struct {
	// Class is a number from 0, of the schema's label values.
	Class int
	// Value is the number that a regression predicts, within the range of the label.
	Value float64
	// Probabilities of the classes; nil for a support vector machine, which has none.
	Probabilities []float64
}

// Predict returns the predictions for examples that were encoded by the schema of the card, as
// table.Features does.
func (m *Model) Predict(d *dataset.Dataset) []Prediction {
	predictions := make([]Prediction, d.Rows)
	input := make([]float64, d.Dim)
	for i := range predictions {
		clear(input)
		indices, values := d.Row(i)
		for k, v := range values {
			at := k
			if indices != nil {
				at = int(indices[k])
			}
			input[at] = float64(v)
		}
		predictions[i] = m.predict(input)
	}
	return predictions
}

// predict returns the prediction for an encoded row.
func (m *Model) predict(x []float64) Prediction {
	for i, l := range m.Layers {
		output := make([]float64, l.Out)
		copy(output, l.Biases)
		for k, v := range x {
			if v == 0 || i > 0 && v < 0 { // ReLU
				continue
			}
			for o := range output {
				output[o] += v * l.Weights[k*l.Out+o]
			}
		}
		x = output
	}
	if len(x) == 1 {
		p := Prediction{}
		if ends := m.Card.Schema.Label.Range; m.Card.Model == model.LinearRegression {
			p.Value = ends[0] + (max(-1, min(x[0], 1))+1)/2*(ends[1]-ends[0])
			return p
		}
		if x[0] > 0 {
			p.Class = 1
		}
		if m.Card.Model == model.LogisticRegression {
			second := 1 / (1 + math.Exp(-x[0]))
			p.Probabilities = []float64{1 - second, second}
		}
		return p
	}
	p := Prediction{Probabilities: make([]float64, len(x))}
	for k, z := range x {
		if z > x[p.Class] {
			p.Class = k
		}
	}
	var total float64
	for k, z := range x {
		p.Probabilities[k] = math.Exp(z - x[p.Class])
		total += p.Probabilities[k]
	}
	for k := range p.Probabilities {
		p.Probabilities[k] /= total
	}
	return p
}
