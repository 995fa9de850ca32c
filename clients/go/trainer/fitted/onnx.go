package fitted

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// Versions of the format. ONNX 1.14 (2023) has them, and is the first in which Equal compares texts.
const (
	onnxVersion = 9  // ir_version
	onnxOpset   = 19 // operators
)

// Element types of ONNX (TensorProto.DataType).
const (
	onnxFloat  = 1
	onnxInt    = 7 // int64
	onnxText   = 8
	onnxDouble = 11
)

// encodeONNX returns the model as an ONNX file, encoding of rows included. Its inputs are the columns of the
// schema: N × 1 texts without blanks around them, or N × 1 or N × Length doubles, NaN where one is missing. The first
// output is the label, under the name of its column. The second is the probabilities of the classes, if the model has
// any. A row that predict refuses has the label "", or NaN.
func encodeONNX(m *Model) []byte {
	g := &graph{names: make(map[string]int)}
	s := m.Card.Schema
	for _, f := range s.Features {
		g.names[f.Column] = 1
	}
	g.names[s.Label.Column] = 1
	x := g.row(s)
	for i, l := range m.Layers {
		if i > 0 {
			x = g.node("Relu", nil, x)
		}
		x = g.node("MatMul", nil, x, g.doubles(l.Weights, l.In, l.Out))
		x = g.node("Add", nil, x, g.doubles(l.Biases, l.Out))
	}
	g.answer(m, x)
	file := appendInt(nil, 1, onnxVersion)
	file = appendBytes(file, 2, "dpareto")
	file = appendBytes(file, 6, m.Card.Statement)
	file = appendBytes(file, 7, appendBytes(g.content, 2, string(m.Card.Model)))
	return appendBytes(file, 8, (appendInt(nil, 2, onnxOpset)))
}

// graph is the content of a GraphProto, which grows.
type graph struct {
	content []byte
	names   map[string]int // with how many values begin with them
	bad     []string       // N × 1 doubles, positive for rows that predict refuses
}

// row adds the encoding of rows, and returns its N × Dim doubles.
func (g *graph) row(s *table.Schema) string {
	missing := slices.Compact(slices.Sorted(slices.Values(s.MissingTexts())))
	var parts []string
	for i := range s.Features {
		f := &s.Features[i]
		if len(f.Range) > 0 {
			parts = append(parts, g.number(f)...)
		} else {
			parts = append(parts, g.category(f, missing)...)
		}
	}
	// Rows have float32, as in training.
	x := g.cast(g.cast(g.node("Concat", alongColumns, parts...), onnxFloat), onnxDouble)
	norm := g.node("Sqrt", nil, g.sum(g.node("Mul", nil, x, x)))
	bound := g.double(s.FeatureNorm())
	factor := g.node("Mul", nil, g.node("Div", nil, bound, norm), g.double(table.Slack))
	x = g.node("Mul", nil, x, g.node("Where", nil, g.node("Greater", nil, norm, bound), factor, g.double(1)))
	return g.cast(g.cast(x, onnxFloat), onnxDouble)
}

// number adds the encoding of a column of numbers, and returns its values.
func (g *graph) number(f *table.Feature) []string {
	g.value(11, f.Column, onnxDouble, max(1, f.Length))
	low, one := g.double(f.Range[0]), g.double(1)
	x := g.node("Clip", nil, f.Column, low, g.double(f.Range[1]))
	x = g.node("Div", nil, g.node("Sub", nil, x, low), g.double(f.Range[1]-f.Range[0]))
	x = g.node("Sub", nil, g.node("Mul", nil, g.double(2), x), one)
	x = g.node("Clip", nil, x, g.double(-1), one)
	absent := g.node("IsNaN", nil, f.Column)
	g.bad = append(g.bad, g.sum(g.cast(g.node("IsInf", nil, f.Column), onnxDouble)))
	x = g.node("Where", nil, absent, g.double(0), x)
	counted := g.cast(absent, onnxDouble)
	if f.Missing == table.Indicator {
		return []string{x, counted}
	}
	g.bad = append(g.bad, g.sum(counted))
	return []string{x}
}

// category adds the encoding of a column of categories, and returns its values.
func (g *graph) category(f *table.Feature, missing []string) []string {
	g.value(11, f.Column, onnxText, 1)
	values := g.cast(g.node("Equal", nil, f.Column, g.texts(f.Categories)), onnxDouble)
	other := g.node("Sub", nil, g.double(1), g.sum(values))
	absent := g.cast(g.node("Equal", nil, f.Column, g.texts(missing)), onnxDouble)
	absent = g.node("Mul", nil, g.sum(absent), other) // a category may have the name
	other = g.node("Sub", nil, other, absent)
	parts := []string{values}
	if f.Unknown == table.Other {
		parts = append(parts, other)
	} else {
		g.bad = append(g.bad, other)
	}
	if f.Missing == table.Indicator {
		parts = append(parts, absent)
	} else {
		g.bad = append(g.bad, absent)
	}
	return parts
}

// answer adds the outputs of the file, from the output of the last layer.
func (g *graph) answer(m *Model, x string) {
	label := m.Card.Schema.Label
	refused := g.double(0)
	for _, b := range g.bad {
		refused = g.node("Add", nil, refused, b)
	}
	refused = g.node("Greater", nil, refused, g.double(0))
	if m.Card.Model == model.LinearRegression {
		x = g.node("Clip", nil, x, g.double(-1), g.double(1))
		x = g.node("Div", nil, g.node("Add", nil, x, g.double(1)), g.double(2))
		x = g.node("Add", nil, g.node("Mul", nil, x, g.double(label.Range[1]-label.Range[0])), g.double(label.Range[0]))
		g.named(label.Column, "Where", refused, g.double(math.NaN()), x)
		g.value(12, label.Column, onnxDouble, 1)
		return
	}
	var class, probabilities string
	if len(m.Layers[len(m.Layers)-1].Biases) == 1 {
		class = g.cast(g.node("Greater", nil, x, g.double(0)), onnxInt)
		if m.Card.Model == model.LogisticRegression {
			second := g.node("Sigmoid", nil, x)
			probabilities = g.node("Concat", alongColumns, g.node("Sub", nil, g.double(1), second), second)
		}
	} else {
		class = g.node("ArgMax", alongColumns, x)
		probabilities = g.node("Softmax", alongColumns, x)
	}
	g.named(label.Column, "Where", refused, g.texts([]string{""}), g.node("Gather", nil, g.texts(label.Values), class))
	g.value(12, label.Column, onnxText, 1)
	if probabilities != "" {
		name := g.name("p_" + label.Column)
		g.named(name, "Where", refused, g.double(math.NaN()), probabilities)
		g.value(12, name, onnxDouble, len(label.Values))
	}
}

// name returns a name that no other value has: the prefix, perhaps with a number.
func (g *graph) name(prefix string) string {
	for {
		g.names[prefix]++
		if n := g.names[prefix]; n == 1 {
			return prefix
		} else if numbered := fmt.Sprintf("%s_%d", prefix, n); g.names[numbered] == 0 {
			g.names[numbered] = 1
			return numbered
		}
	}
}

// node adds an operator with one output, and returns the output.
func (g *graph) node(operator string, attribute []byte, inputs ...string) string {
	output := g.name("/" + strings.ToLower(operator))
	g.add(operator, attribute, output, inputs)
	return output
}

// named adds an operator without attributes, whose output has a given name.
func (g *graph) named(output, operator string, inputs ...string) {
	g.add(operator, nil, output, inputs)
}

func (g *graph) add(operator string, attribute []byte, output string, inputs []string) {
	var n []byte
	for _, input := range inputs {
		n = appendBytes(n, 1, input)
	}
	n = appendBytes(appendBytes(n, 2, output), 4, operator)
	if attribute != nil {
		n = appendBytes(n, 5, attribute)
	}
	g.content = appendBytes(g.content, 1, n)
}

// cast adds a conversion to a type.
func (g *graph) cast(x string, to uint64) string { return g.node("Cast", integer("to", to), x) }

// sum adds the sum over the columns, N × 1.
func (g *graph) sum(x string) string {
	return g.node("ReduceSum", nil, x, g.tensor(onnxInt, []int{1}, 7, protowire.AppendVarint(nil, 1)))
}

// double adds a constant.
func (g *graph) double(x float64) string { return g.doubles([]float64{x}, 1) }

func (g *graph) doubles(values []float64, shape ...int) string {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return g.tensor(onnxDouble, shape, 9, raw)
}

func (g *graph) texts(values []string) string {
	return g.tensor(onnxText, []int{len(values)}, 6, nil, values...)
}

// tensor adds a constant, with its values packed in a field of TensorProto, or as texts.
func (g *graph) tensor(kind uint64, shape []int, field protowire.Number, packed []byte, texts ...string) string {
	name := g.name("/constant")
	var t, dims []byte
	for _, n := range shape {
		dims = protowire.AppendVarint(dims, uint64(n))
	}
	t = appendBytes(t, 1, dims)
	t = appendInt(t, 2, kind)
	for _, v := range texts {
		t = appendBytes(t, field, v)
	}
	if packed != nil {
		t = appendBytes(t, field, packed)
	}
	g.content = appendBytes(g.content, 5, (appendBytes(t, 8, name)))
	return name
}

// value adds an input (field 11) or an output (field 12) of N rows.
func (g *graph) value(field protowire.Number, name string, kind uint64, columns int) {
	rows := appendBytes(nil, 2, "N")
	width := appendInt(nil, 1, uint64(columns))
	shape := appendBytes(appendBytes(nil, 1, rows), 1, width)
	t := appendInt(nil, 1, kind)
	t = appendBytes(t, 2, shape)
	g.content = appendBytes(g.content, field, appendBytes(appendBytes(nil, 1, name), 2, appendBytes(nil, 1, t)))
}

// alongColumns is the attribute of operators that go along columns.
var alongColumns = integer("axis", 1)

// integer returns an AttributeProto of type INT.
func integer(name string, value uint64) []byte {
	return appendInt(appendInt(appendBytes(nil, 1, name), 3, value), 20, 2)
}

// appendBytes appends a field with a length: a message, a text or packed numbers.
func appendBytes[T string | []byte](b []byte, field protowire.Number, content T) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), string(content))
}

func appendInt(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}
