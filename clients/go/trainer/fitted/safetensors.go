package fitted

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
)

// tensor is the entry of a tensor in the header of a safetensors file.
type tensor struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// float64Type is the dtype of float64.
const float64Type = "F64"

// encodeTensors returns layers as a safetensors file: the length of the header in 8 bytes, the header in JSON,
// and the values, all little-endian. Weights are out × in, as frameworks have them.
func encodeTensors(layers []trainer.Layer) []byte {
	header := make(map[string]tensor)
	var data []byte
	add := func(name string, values []float64, shape ...int) {
		first := len(data)
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
		}
		header[name] = tensor{float64Type, shape, [2]int{first, len(data)}}
	}
	for i, l := range layers {
		add(fmt.Sprintf("layers.%d.weight", i), transpose(l.Weights, l.In, l.Out), l.Out, l.In)
		add(fmt.Sprintf("layers.%d.bias", i), l.Biases, l.Out)
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(err) // it has texts and whole numbers only
	}
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(file, head...), data...)
}

// transpose returns a matrix of rows × columns as columns × rows.
func transpose(a []float64, rows, columns int) []float64 {
	b := make([]float64, len(a))
	for i := range rows {
		for k := range columns {
			b[k*rows+i] = a[i*columns+k]
		}
	}
	return b
}

// decodeTensors reads what encodeTensors writes, from a file that need not come from there.
func decodeTensors(file []byte) ([]trainer.Layer, error) {
	if len(file) < 8 {
		return nil, errors.New("ends within the length of its header")
	}
	length := binary.LittleEndian.Uint64(file)
	data := file[8:]
	if length > uint64(len(data)) {
		return nil, errors.New("ends within its header")
	}
	header := make(map[string]tensor)
	if err := json.Unmarshal(data[:length], &header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	data = data[length:]
	read := func(name string, dimensions int) (values []float64, shape []int, err error) {
		t := header[name]
		size := 1
		for _, n := range t.Shape {
			if n < 1 || n > len(data) || size > len(data)/n {
				return nil, nil, fmt.Errorf("%s: has an impossible shape", name)
			}
			size *= n
		}
		first, end := t.Offsets[0], t.Offsets[1]
		if t.Type != float64Type || len(t.Shape) != dimensions || first < 0 || end > len(data) || end-first != 8*size {
			return nil, nil, fmt.Errorf("%s: must be a tensor of %d dimensions and type %s within the file", name, dimensions, float64Type)
		}
		for i := range size {
			v := math.Float64frombits(binary.LittleEndian.Uint64(data[first+8*i:]))
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, nil, fmt.Errorf("%s: has a value that is not finite", name)
			}
			values = append(values, v)
		}
		return values, t.Shape, nil
	}
	layers := make([]trainer.Layer, len(header)/2)
	for i := range layers {
		weights, shape, err := read(fmt.Sprintf("layers.%d.weight", i), 2)
		if err != nil {
			return nil, err
		}
		biases, _, err := read(fmt.Sprintf("layers.%d.bias", i), 1)
		if err != nil {
			return nil, err
		}
		layers[i] = trainer.Layer{In: shape[1], Out: shape[0], Weights: transpose(weights, shape[0], shape[1]), Biases: biases}
	}
	return layers, nil
}
