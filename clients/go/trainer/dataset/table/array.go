package table

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// array is an array in memory. Its first index counts rows.
type array struct {
	rows, width int
	// scalar says that rows have a single value, and no second index.
	scalar bool
	// value returns the value at a column of a row.
	value func(row, column int) cell
}

// arrayReader reads the rows of arrays.
type arrayReader struct {
	fields []field
	arrays []array
	row    []cell
	at     int
}

// newArrays returns a reader of arrays by their names.
func newArrays(names []string, arrays []array) (*arrayReader, error) {
	r := &arrayReader{arrays: arrays}
	width := 0
	for i, a := range arrays {
		if a.rows == 0 {
			return nil, errors.New("has no rows") // which could be of any width
		}
		if a.rows != arrays[0].rows {
			return nil, errors.New("its arrays have different numbers of rows")
		}
		f := field{name: names[i]}
		if !a.scalar {
			f.length = a.width
		}
		r.fields = append(r.fields, f)
		width += a.width
	}
	r.row = make([]cell, width)
	return r, nil
}

func (r *arrayReader) header() []field { return r.fields }

func (r *arrayReader) next() ([]cell, string, error) {
	if len(r.arrays) == 0 || r.at == r.arrays[0].rows {
		return nil, "", io.EOF
	}
	k := 0
	for _, a := range r.arrays {
		for column := range a.width {
			r.row[k] = a.value(r.at, column)
			k++
		}
	}
	r.at++
	return r.row, "", nil
}

// newNPY reads a file of NumPy with one array, the column x.
func newNPY(r io.Reader) (reader, error) {
	a, err := readNPY(r)
	if err != nil {
		return nil, err
	}
	return newArrays([]string{columnX}, []array{a})
}

// newNPZ reads a file of NumPy with several arrays, the columns of their names.
func newNPZ(f *os.File) (reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, errors.New("is no complete archive of NumPy (NPZ)")
	}
	var names []string
	var arrays []array
	for _, entry := range archive.File {
		name, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok {
			return nil, errors.New("has an entry that is no array: it is no archive of NumPy (NPZ)")
		}
		content, err := entry.Open()
		if err != nil {
			return nil, err
		}
		a, err := readNPY(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return nil, err
		}
		names, arrays = append(names, name), append(arrays, a)
	}
	return newArrays(names, arrays)
}

// npyHeader is the header of an array: a literal of Python.
var npyHeader = regexp.MustCompile(`^\{'descr': *'([<>|=]?)([a-zA-Z?])([0-9]*)', *'fortran_order': *(True|False), *'shape': *\(([0-9, ]*)\),? *\} *\n?$`)

// readNPY reads an array of numbers, booleans or texts in the format of NumPy
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
func readNPY(r io.Reader) (a array, err error) {
	var begin [10]byte
	if _, err := io.ReadFull(r, begin[:]); err != nil || string(begin[:6]) != "\x93NUMPY" {
		return a, errors.New("does not begin as an array of NumPy does")
	}
	length := int(binary.LittleEndian.Uint16(begin[8:]))
	if begin[6] > 1 {
		var high [2]byte
		if _, err := io.ReadFull(r, high[:]); err != nil {
			return a, errors.New("ends within its header")
		}
		length |= int(binary.LittleEndian.Uint16(high[:])) << 16
	}
	const longest = 1 << 16 // of an array that is not structured
	if length > longest {
		return a, errors.New("has too long a header")
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(r, header); err != nil {
		return a, errors.New("ends within its header")
	}
	match := npyHeader.FindSubmatch(header)
	if match == nil {
		return a, errors.New("must be an array of numbers, booleans or texts; save structured arrays and data frames as NPZ, one array per column")
	}
	size, _ := strconv.Atoi(string(match[3])) // 0 for booleans, whose code may have none
	order := binary.ByteOrder(binary.LittleEndian)
	if string(match[1]) == ">" {
		order = binary.BigEndian
	}
	decode, size := npyDecoder(match[2][0], size, order)
	if decode == nil {
		return a, errors.New("has elements that are neither numbers nor booleans nor texts")
	}
	var shape []int
	count := 1
	for part := range strings.SplitSeq(string(match[5]), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n > maxValues || n > 0 && count > maxValues/n {
			return a, fmt.Errorf("is too large: more than %d values", maxValues)
		}
		shape, count = append(shape, n), count*n
	}
	if len(shape) == 0 {
		return a, errors.New("is a single value, must be an array with a row for each example")
	}
	// A file that is shorter than its header says takes no more memory than it has.
	content, err := io.ReadAll(io.LimitReader(r, int64(count*size)+1))
	if err != nil {
		return a, err
	}
	if len(content) != count*size {
		return a, errors.New("does not have as many values as its header says")
	}
	a = array{rows: shape[0], width: 1, scalar: len(shape) == 1}
	for _, n := range shape[1:] {
		a.width *= n
	}
	strides := make([]int, len(shape)) // in elements
	step := 1
	for k := range shape {
		axis := len(shape) - 1 - k
		if string(match[4]) == "True" {
			axis = k
		}
		strides[axis], step = step, step*shape[axis]
	}
	a.value = func(row, column int) cell {
		at := row * strides[0]
		for axis := len(shape) - 1; axis > 0; axis-- {
			at += column % shape[axis] * strides[axis]
			column /= shape[axis]
		}
		return decode(content[at*size:][:size])
	}
	return a, nil
}

// npyDecoder returns a function for elements of a kind and a size, and their size in bytes.
func npyDecoder(kind byte, size int, order binary.ByteOrder) (func([]byte) cell, int) {
	number := func(of func([]byte) float64) func([]byte) cell {
		return func(b []byte) cell { return cell{number: of(b), numeric: true} }
	}
	switch [2]byte{kind, byte(min(size, 255))} {
	case [2]byte{'f', 2}:
		return number(func(b []byte) float64 { return half(order.Uint16(b)) }), size
	case [2]byte{'f', 4}:
		return number(func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }), size
	case [2]byte{'f', 8}:
		return number(func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }), size
	case [2]byte{'i', 1}:
		return number(func(b []byte) float64 { return float64(int8(b[0])) }), size
	case [2]byte{'i', 2}:
		return number(func(b []byte) float64 { return float64(int16(order.Uint16(b))) }), size
	case [2]byte{'i', 4}:
		return number(func(b []byte) float64 { return float64(int32(order.Uint32(b))) }), size
	case [2]byte{'i', 8}:
		return number(func(b []byte) float64 { return float64(int64(order.Uint64(b))) }), size
	case [2]byte{'u', 1}:
		return number(func(b []byte) float64 { return float64(b[0]) }), size
	case [2]byte{'u', 2}:
		return number(func(b []byte) float64 { return float64(order.Uint16(b)) }), size
	case [2]byte{'u', 4}:
		return number(func(b []byte) float64 { return float64(order.Uint32(b)) }), size
	case [2]byte{'u', 8}:
		return number(func(b []byte) float64 { return float64(order.Uint64(b)) }), size
	case [2]byte{'b', 1}, [2]byte{'?', 0}:
		return func(b []byte) cell { return cell{text: strconv.FormatBool(b[0] != 0)} }, 1
	}
	switch {
	case kind == 'U' && size > 0 && size < 1<<20:
		return func(b []byte) cell {
			var text []rune
			for ; len(b) > 0; b = b[4:] {
				if r := rune(order.Uint32(b)); r != 0 {
					text = append(text, r)
				}
			}
			return cell{text: strings.TrimSpace(string(text))}
		}, 4 * size
	case kind == 'S' && size > 0 && size < 1<<20:
		return func(b []byte) cell { return cell{text: strings.TrimSpace(strings.TrimRight(string(b), "\x00"))} }, size
	}
	return nil, 0
}

// half returns a number of 16 bits in the format of IEEE 754.
func half(bits uint16) float64 {
	sign := 1 - 2*float64(bits>>15)
	exponent, fraction := int(bits>>10&31), float64(bits&1023)/1024
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -14)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1+fraction, exponent-15)
}

// labelsOf returns the file of the labels of a file of images in the format IDX.
func labelsOf(images string) string {
	name := strings.Replace(filepath.Base(images), "images", "labels", 1)
	for _, dimensions := range []string{"idx3", "idx4", "idx2"} {
		name = strings.Replace(name, dimensions, "idx1", 1)
	}
	return filepath.Join(filepath.Dir(images), name)
}

// newIDX reads images in the format of MNIST, the column x, and their labels in another file, the column label.
func newIDX(r io.Reader, images, labels string) (reader, error) {
	sizes, pixels, err := dataset.ReadIDX(r, filepath.Base(images))
	if err != nil {
		return nil, errors.New("is no complete IDX file of unsigned bytes")
	}
	width := 1
	for _, n := range sizes[1:] {
		width *= n
	}
	of := func(elements []byte, width int) func(int, int) cell {
		return func(row, column int) cell { return cell{number: float64(elements[row*width+column]), numeric: true} }
	}
	names, arrays := []string{columnX}, []array{{rows: sizes[0], width: width, scalar: len(sizes) == 1, value: of(pixels, width)}}
	f, err := os.Open(labels)
	if errors.Is(err, os.ErrNotExist) || labels == images {
		return newArrays(names, arrays)
	}
	if err != nil {
		return nil, err
	}
	sizes, classes, err := dataset.ReadIDX(f, filepath.Base(labels))
	if err = errors.Join(err, f.Close()); err != nil || len(sizes) != 1 {
		return nil, fmt.Errorf("%s: is no complete IDX file of labels", filepath.Base(labels))
	}
	return newArrays(slices.Insert(names, 0, columnLabel), slices.Insert(arrays, 0, array{rows: sizes[0], width: 1, scalar: true, value: of(classes, 1)}))
}
