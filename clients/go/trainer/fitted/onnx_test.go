package fitted

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

// fieldsOf returns the contents of the fields with a length of a message, by number.
func fieldsOf(t *testing.T, message []byte) map[protowire.Number][]string {
	t.Helper()
	fields := make(map[protowire.Number][]string)
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		require.NoError(t, protowire.ParseError(n))
		message = message[n:]
		if kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(message)
			fields[number] = append(fields[number], string(content))
		}
		n = protowire.ConsumeFieldValue(number, kind, message)
		require.NoError(t, protowire.ParseError(n))
		message = message[n:]
	}
	return fields
}

// TestONNXGraph checks that every operator takes what inputs, constants and earlier operators give, under names that are
// different, and that nothing is left over. tests/test_own_data.py of the Python client runs models.
func TestONNXGraph(t *testing.T) {
	for _, tt := range []struct {
		kind    model.Kind
		labels  []string
		outputs []string
	}{
		{model.LogisticRegression, []string{"no", "yes"}, []string{"y", "p_y_2"}},
		{model.LinearSVM, []string{"no", "yes"}, []string{"y"}},
		{model.LinearRegression, nil, []string{"y"}},
		{model.MLP, []string{"no", "yes", "perhaps"}, []string{"y", "p_y_2"}},
	} {
		for _, missing := range []string{"", table.Indicator} {
			s := schema(tt.labels...)
			s.Features = append(s.Features, table.Feature{Column: "p_y", Categories: []string{"x", "NA"}, Missing: missing},
				table.Feature{Column: "/constant", Range: []float64{0, 1}, Length: 2})
			if tt.labels == nil {
				s.Label.Range = []float64{0, 1}
			}
			layers := []trainer.Layer{{In: s.Dim(), Out: max(1, 3*len(tt.labels)-6)}}
			if tt.kind == model.MLP {
				layers = []trainer.Layer{{In: s.Dim(), Out: 4}, {In: 4, Out: 3}}
			}
			for i, l := range layers {
				layers[i].Weights, layers[i].Biases = make([]float64, l.In*l.Out), make([]float64, l.Out)
			}
			m := &Model{Card: Card{Format: Format, Model: tt.kind, Schema: s}, Layers: layers}
			require.NoError(t, m.validate())
			g := fieldsOf(t, []byte(fieldsOf(t, encodeONNX(m))[7][0]))
			known, used := make(map[string]bool), make(map[string]bool)
			define := func(name string) {
				if known[name] {
					t.Errorf("%s: two values are called %s", tt.kind, name)
				}
				known[name] = true
			}
			for _, input := range g[11] {
				define(fieldsOf(t, []byte(input))[1][0])
			}
			for _, constant := range g[5] {
				define(fieldsOf(t, []byte(constant))[8][0])
			}
			for _, n := range g[1] {
				fields := fieldsOf(t, []byte(n))
				for _, input := range fields[1] {
					if used[input] = true; !known[input] {
						t.Errorf("%s: %s takes %s, which is unknown", tt.kind, fields[4], input)
					}
				}
				define(fields[2][0])
			}
			var outputs []string
			for _, output := range g[12] {
				outputs = append(outputs, fieldsOf(t, []byte(output))[1][0])
			}
			for name := range known {
				if used[name] == slices.Contains(outputs, name) {
					t.Errorf("%s: %s is used: %t", tt.kind, name, used[name])
				}
			}
			if !slices.Equal(outputs, tt.outputs) {
				t.Errorf("%s: outputs %q", tt.kind, outputs)
			}
		}
	}
}
