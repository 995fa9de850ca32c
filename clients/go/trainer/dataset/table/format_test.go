package table

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/dpareto/dpareto/internal/require"
)

// images is a schema of a vector and a class.
const images = `
rows: public
label: {column: label, values: [1, 2]}
features:
- {column: x, length: 4, range: [0, 255]}
`

var pixels = [][]int{{0, 255, 51, 102}, {255, 0, 0, 204}, {51, 51, 51, 0}, {0, 0, 255, 255}}

// npy returns an array in NumPy's format.
func npy(descr, order, shape string, elements any) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, shape)
	header += strings.Repeat(" ", (64-(len(header)+11)%64)%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	b = append(b, header...)
	b, _ = binary.Append(b, binary.LittleEndian, elements)
	return b
}

func npz(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for name, content := range arrays {
		w, err := archive.Create(name)
		require.NoError(t, err)
		_, err = w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	return b.String()
}

func parquetFile[T any](t testing.TB, rows []T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, rows))
	return b.String()
}

// flat returns the pixels in one slice, by columns if asked to.
func flat[T float32 | uint8 | float64](byColumns bool) (all []T) {
	for k := range 16 {
		row, column := k/4, k%4
		if byColumns {
			row, column = column, row
		}
		all = append(all, T(pixels[row][column]))
	}
	return all
}

func idx(sizes []uint32, elements []byte) string {
	b := []byte{0, 0, 8, byte(len(sizes))}
	for _, n := range sizes {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return string(append(b, elements...))
}

// The same rows in every format give the same examples.
func TestFormats(t *testing.T) {
	type image struct {
		Label  int32     `parquet:"label"`
		Pixels []float64 `parquet:"x,list"`
		Note   *string   `parquet:"note,optional"`
	}
	var list []image
	csv, libsvm := "label,x0,x1,x2,x3\n", "# four rows\n\n"
	for i, row := range pixels {
		list = append(list, image{Label: int32(1 + i%2)})
		csv += fmt.Sprint(1 + i%2)
		libsvm += fmt.Sprintf("+%d.0 ", 1+i%2)
		for k, x := range row {
			list[i].Pixels = append(list[i].Pixels, float64(x))
			csv += fmt.Sprintf(",%d", x)
			if x != 0 {
				libsvm += fmt.Sprintf(" %d:%d", k+1, x)
			}
		}
		csv += "\n"
		libsvm += " 9:7 # a comment\n"
	}
	labels := npy("<i8", "False", "4,", []int64{1, 2, 1, 2})
	bytesOf := map[string]string{
		"t.csv":                   csv,
		"t.libsvm":                libsvm,
		"t.parquet":               parquetFile(t, list),
		"t.npz":                   npz(t, map[string][]byte{"label.npy": labels, "x.npy": npy("<f4", "False", "4, 4", flat[float32](false))}),
		"by.npz":                  npz(t, map[string][]byte{"label.npy": labels, "x.npy": npy("<f8", "True", "4, 4", flat[float64](true)), "other.npy": npy("|b1", "False", "4,", make([]byte, 4))}),
		"three.npz":               npz(t, map[string][]byte{"label.npy": npy("<U2", "False", "4,", []rune{'1', 0, '2', 0, '1', 0, '2', 0}), "x.npy": npy("|u1", "False", "4, 2, 2", flat[uint8](false))}),
		"train-images-idx3-ubyte": idx([]uint32{4, 2, 2}, flat[uint8](false)),
	}
	var want []float32
	for _, x := range flat[float32](false) {
		want = append(want, float32(2*(float64(x)/255)-1))
	}
	for name, content := range bytesOf {
		path := writeFile(t, name, content)
		if strings.Contains(name, "idx") {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "train-labels-idx1-ubyte"), []byte(idx([]uint32{4}, []byte{1, 2, 1, 2})), 0o600))
		}
		for _, schema := range []string{images, strings.Replace(images, "- {column: x, length: 4, range: [0, 255]}", // one by one
			"- {column: x0, range: [0, 255]}\n- {column: x1, range: [0, 255]}\n- {column: x2, range: [0, 255]}\n- {column: x3, range: [0, 255]}", 1)} {
			e := newEncoder(parse(t, schema))
			if _, err := e.readFile(path); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			d := e.finish(name)
			if !slices.Equal(d.Dense, want) || !slices.Equal(d.Labels, []float32{-1, 1, -1, 1}) || d.FeatureNorm != 2 || len(e.found.list) > 0 {
				t.Errorf("%s: %v, labels %v, norm %v, findings %v", name, d.Dense, d.Labels, d.FeatureNorm, e.found.list)
			}
		}
		if strings.HasPrefix(name, "three") || strings.Contains(name, "csv") {
			continue // Propose is about the others
		}
		proposed, _, err := Propose(Sample{Path: path, Rows: 4, Label: "label"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		i := slices.IndexFunc(proposed.Features, func(f Feature) bool { return f.Column == "x" })
		length := 4
		if name == "t.libsvm" {
			length = 9
		}
		if i < 0 || proposed.Features[i].Length != length || !slices.Equal(proposed.Features[i].Range, []float64{0, 300}) {
			t.Errorf("%s: proposed %+v", name, proposed.Features)
		}
	}
}

// Parquet has types of its own: they become numbers, texts and dates, and nothing is missing.
func TestParquetTypes(t *testing.T) {
	type row struct {
		Day    int32    `parquet:"day,date"`
		At     int64    `parquet:"at,timestamp(millisecond)"`
		Price  int64    `parquet:"price,decimal(2:10)"`
		Count  uint32   `parquet:"count"`
		Rate   *float32 `parquet:"rate,optional"`
		Member bool     `parquet:"member"`
		City   string   `parquet:"city,dict"`
	}
	rate := float32(0.5)
	path := writeFile(t, "t", parquetFile(t, []row{
		{20000, 1700000000123, 1999, math.MaxUint32, &rate, true, "Bern"}, {-1, 0, -1, 0, nil, false, ""},
	}))
	rows, _, closer, err := openFile(path, "", 0)
	require.NoError(t, err)
	for _, want := range []string{"[2024-10-04 2023-11-14T22:13:20.123000 19.99 4294967295 0.5 true Bern]", "[1969-12-31 1970-01-01T00:00:00.000000 -0.01 0  false ]"} {
		cells, problem, err := rows.next()
		if got := fmt.Sprint(cells); err != nil || problem != "" || got != want {
			t.Errorf("row %s, %s, %v, want %s", got, problem, err, want)
		}
	}
	require.NoError(t, closer.Close())
}

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{0: 0, 1: 0x1p-24, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x3555: 0.333251953125, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1)} {
		if got := half(bits); got != want {
			t.Errorf("%x is %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(half(0x7e00)) {
		t.Error("no NaN")
	}
}

// No broken file of any format trains, and no error has a value of the file.
func TestBrokenFormats(t *testing.T) {
	type image struct {
		Label string    `parquet:"label"`
		X     []float64 `parquet:"x,list"`
	}
	good := parquetFile(t, []image{{"1", []float64{1, 2, 3, 4}}, {"2", []float64{4, 3, 2, 1}}})
	labels := npy("<i8", "False", "4,", []int64{1, 2, 1, 2})
	x := npy("<f4", "False", "4, 4", flat[float32](false))
	for name, tt := range map[string]struct{ file, content, want string }{
		"parquet cut":          {"t.parquet", good[:len(good)/2], "is no complete Parquet file"},
		"parquet of garbage":   {"t.parquet", "PAR1" + strings.Repeat("4711", 100) + "PAR1", "is no complete Parquet file"},
		"parquet that is text": {"t.parquet", "label,x0\n4711,1\n", "does not begin as a file of this format does"},
		"lists of two lengths": {"t.parquet", parquetFile(t, []image{{"1", []float64{1, 2, 3, 4711}}, {"2", []float64{4, 3}}}), "rows have a list of another length than the first row (1 rows)"},
		"another length":       {"t.parquet", parquetFile(t, []image{{"1", []float64{4711}}}), `column "x" has 1 numbers in the file, but length 4 in the schema`},
		"infinite number":      {"t.parquet", parquetFile(t, []image{{"1", []float64{1, 2, math.Inf(1), 4711}}}), `column "x": values are not finite numbers; missing of the schema has the texts of missing values (1 rows)`},
		"NaN":                  {"t.parquet", parquetFile(t, []image{{"1", []float64{1, 2, math.NaN(), 4711}}}), `column "x": values are not finite numbers; missing of the schema has the texts of missing values (1 rows)`},
		"label of another set": {"t.parquet", parquetFile(t, []image{{"SECRET", []float64{1, 2, 3, 4}}}), `column "label": labels are not among the values of the schema; rows without a label must be left out (1 rows)`},
		"no label":             {"t.npz", npz(t, map[string][]byte{"x.npy": x}), `has no column "label"`},
		"array cut":            {"t.npz", npz(t, map[string][]byte{"x.npy": x[:len(x)-1], "label.npy": labels}), "does not have as many values as its header says"},
		"array too long":       {"t.npz", npz(t, map[string][]byte{"x.npy": append(slices.Clone(x), 1), "label.npy": labels}), "does not have as many values as its header says"},
		"rows differ":          {"t.npz", npz(t, map[string][]byte{"x.npy": x, "label.npy": npy("<i8", "False", "3,", []int64{1, 2, 1})}), "its arrays have different numbers of rows"},
		"pickled objects":      {"t.npz", npz(t, map[string][]byte{"x.npy": npy("|O", "False", "4,", []byte("SECRET"))}), "neither numbers nor booleans nor texts"},
		"structured array":     {"t.npy", string(npy("<f4'), ('secret", "False", "4,", []byte("SECRET"))), "save structured arrays and data frames as NPZ"},
		"single value":         {"t.npy", string(npy("<f8", "False", "", []float64{4711})), "is a single value"},
		"huge shape":           {"t.npy", string(npy("<f8", "False", "99999999, 99999999", []float64{4711})), "is too large"},
		"archive of others":    {"t.npz", npz(t, map[string][]byte{"SECRET.txt": []byte("4711")}), "has an entry that is no array"},
		"archive cut":          {"t.npz", "PK\x03\x04SECRET", "is no complete archive of NumPy"},
		"pairs of words":       {"t.libsvm", "1 1:3\n2 SECRET:4711\n", "rows are not a label and pairs index:value"},
		"index 0":              {"t.libsvm", "1 0:4711\n", "increasing indices from 1"},
		"index falls":          {"t.libsvm", "1 3:4711 2:1\n", "increasing indices from 1"},
		"infinite pair":        {"t.libsvm", "1 1:inf\n", "with finite numbers"},
		"images cut":           {"images-idx3", idx([]uint32{4, 2, 2}, []byte("SECRET")), "is no complete IDX file of unsigned bytes"},
		"images of floats":     {"images-idx3", "\x00\x00\x0d\x01\x00\x00\x00\x01SECR", "is no complete IDX file of unsigned bytes"},
		"no labels":            {"images-idx3", idx([]uint32{4, 2, 2}, flat[uint8](false)), `has no column "label"`},
	} {
		_, err := Load(t.Context(), Request{Path: writeFile(t, tt.file, tt.content), Schema: parse(t, images), Seed: 1})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), tt.file+": ") {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
		} else if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: the error has a value of the file: %v", name, err)
		}
	}
}

// Damaged files give errors, and never a panic. Parquet is left out: the library may take the memory that a file asks for.
// readBounded reads a file, and fails if that takes memory out of proportion to the content.
func readBounded(t *testing.T, content []byte) {
	t.Helper()
	e := newEncoder(parse(t, images))
	e.most = 1 << 16
	path := writeFile(t, "file", string(content))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = e.readFile(path)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20+1<<10*uint64(len(content)) {
		t.Errorf("%d bytes took %d MiB", len(content), taken>>20)
	}
}

func FuzzFormats(f *testing.F) {
	f.Add(npy("<f4", "False", "4, 4", flat[float32](false)))
	f.Add(npy("<f4", "False", "0, 67108864", []byte{}))
	f.Add([]byte(idx([]uint32{4, 2, 2}, flat[uint8](false))))
	f.Add([]byte(idx([]uint32{0, 8192, 8192}, nil)))
	f.Add([]byte("label,x0,x1,x2,x3\n1,2,3,4,5\n"))
	f.Fuzz(readBounded)
}

func FuzzParquet(f *testing.F) {
	type row struct {
		Label   int32     `parquet:"label"`
		X       []float64 `parquet:"x,list"`
		Name    string    `parquet:"name,dict"`
		Rate    *float32  `parquet:"rate,optional,split"`
		Member  bool      `parquet:"member"`
		At      int64     `parquet:"at,timestamp(millisecond)"`
		Delta   int64     `parquet:"delta,delta"`
		Word    string    `parquet:"word,delta"`
		Price   int32     `parquet:"price,decimal(2:9)"`
		Count   uint64    `parquet:"count"`
		Address [16]byte  `parquet:"address,uuid"`
	}
	rate := float32(0.5)
	rows := []row{{Label: 1, X: []float64{1, 2, 3, 4}, Name: "a", Word: "bc", Rate: &rate}, {Label: 2, X: []float64{5, 6, 7, 8}, Name: "a", Word: "bd", Member: true}}
	for _, options := range [][]parquet.WriterOption{
		{parquet.DataPageVersion(1)}, {parquet.DataPageVersion(2)}, {parquet.MaxRowsPerRowGroup(1)},
		{parquet.Compression(&parquet.Snappy)}, {parquet.Compression(&parquet.Gzip)}, {parquet.Compression(&parquet.Zstd)},
	} {
		var b bytes.Buffer
		require.NoError(f, parquet.Write(&b, rows, options...))
		f.Add(b.Bytes())
	}
	f.Add([]byte(parquetFile(f, rows[:0])))
	f.Add([]byte("PAR1PAR1")) // states 789 MiB of metadata
	// With few columns, most mutations reach the pages that are read.
	type image struct {
		Label string    `parquet:"label,dict"`
		X     []float64 `parquet:"x,list"`
	}
	f.Add([]byte(parquetFile(f, []image{{"1", []float64{1, 2, 3, 4}}, {"2", []float64{4, 3, 2, 1}}})))
	f.Fuzz(readBounded)
}
