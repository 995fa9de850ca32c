package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquetReader reads a Parquet file. A list is a column of several numbers, as many as in the first row.
type parquetReader struct {
	rows   parquet.Rows // nil if there are none
	fields []field
	leaves []leaf
	values []parquet.Row
	row    []cell
	read   int
}

// leaf is a column of values.
type leaf struct {
	first, length int // among the cells
	list          bool
	cell          func(parquet.Value) cell // nil for a type that is not supported
}

func newParquet(f *os.File) (_ reader, err error) {
	// The library panics at some malformed files.
	defer func() {
		if recover() != nil {
			err = errMalformedParquet
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !footerFits(f, info.Size()) {
		return nil, errMalformedParquet
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil || !pagesFit(f, info.Size(), file.Metadata()) {
		return nil, errMalformedParquet
	}
	p := &parquetReader{values: make([]parquet.Row, 1)}
	if groups := file.RowGroups(); len(groups) > 0 {
		p.rows = parquet.MultiRowGroup(groups...).Rows()
	}
	for _, path := range file.Schema().Columns() {
		column, _ := file.Schema().Lookup(path...)
		p.leaves = append(p.leaves, leaf{length: 1, list: column.MaxRepetitionLevel > 0, cell: cellOf(column.Node.Type())})
		name := path[0]
		if column.MaxRepetitionLevel == 0 {
			name = strings.Join(path, ".")
		}
		p.fields = append(p.fields, field{name: name})
	}
	if err := p.advance(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	first := 0
	for i := range p.leaves {
		if p.leaves[i].list {
			p.fields[i].length = max(1, p.count(i))
			p.leaves[i].length = p.fields[i].length
		}
		p.leaves[i].first = first
		first += p.leaves[i].length
	}
	p.row = make([]cell, first)
	return p, nil
}

// Bounds on a page. The library takes the memory that headers ask for before it reads.
const (
	mostHeaderBytes = 1 << 16
	mostPageBytes   = 1 << 27
	mostPageValues  = 1 << 26
)

// footerFits reports whether the metadata are as long as the file allows.
func footerFits(f io.ReaderAt, size int64) bool {
	var end [8]byte
	_, err := f.ReadAt(end[:], max(0, size-int64(len(end))))
	return err == nil && int64(binary.LittleEndian.Uint32(end[:4])) <= size-int64(len(end))
}

// pagesFit reports whether all pages are in the file, and none is over the bounds.
func pagesFit(f io.ReaderAt, size int64, metadata *format.FileMetaData) bool {
	var protocol thrift.CompactProtocol
	begin := make([]byte, mostHeaderBytes)
	for _, group := range metadata.RowGroups {
		for _, column := range group.Columns {
			at := column.MetaData.DataPageOffset
			if dictionary := column.MetaData.DictionaryPageOffset; dictionary > 0 {
				at = dictionary
			}
			end := at + column.MetaData.TotalCompressedSize
			if at < 0 || end < at || end > size {
				return false
			}
			for at < end {
				n, err := f.ReadAt(begin[:min(mostHeaderBytes, end-at)], at)
				if err != nil {
					return false
				}
				var header format.PageHeader
				r := protocol.NewReaderFromBytes(begin[:n])
				if err := thrift.NewDecoder(r).Decode(&header); err != nil {
					return false
				}
				values := max(header.DataPageHeader.V.NumValues, header.DataPageHeaderV2.V.NumValues, header.DictionaryPageHeader.V.NumValues)
				at += int64(r.BytesRead()) + int64(header.CompressedPageSize)
				if header.CompressedPageSize < 0 || at > end || header.UncompressedPageSize > mostPageBytes || values > mostPageValues {
					return false
				}
			}
		}
	}
	return true
}

var errMalformedParquet = errors.New("is no complete Parquet file")

func (p *parquetReader) header() []field { return p.fields }

// advance reads the next row.
func (p *parquetReader) advance() (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("is malformed after %d rows", p.read)
		}
	}()
	if p.rows == nil {
		return io.EOF
	}
	n, err := p.rows.ReadRows(p.values)
	switch {
	case n == 1:
		p.read++
		return nil
	case errors.Is(err, io.EOF):
		p.values[0] = nil
		return io.EOF
	default:
		return fmt.Errorf("is malformed after %d rows", p.read)
	}
}

// count returns the number of values of a list in the row that was read.
func (p *parquetReader) count(column int) int {
	n := 0
	for _, v := range p.values[0] {
		if v.Column() == column {
			n++
		}
	}
	return n
}

func (p *parquetReader) next() ([]cell, string, error) {
	if p.values[0] == nil {
		return nil, "", io.EOF
	}
	problem := ""
	counts := make([]int, len(p.leaves))
	for _, v := range p.values[0] {
		l := &p.leaves[v.Column()]
		k := counts[v.Column()]
		counts[v.Column()]++
		switch {
		case k >= l.length:
		case v.IsNull() || l.cell == nil:
			p.row[l.first+k] = cell{}
		default:
			p.row[l.first+k] = l.cell(v)
		}
	}
	for i, n := range counts {
		if n != p.leaves[i].length {
			problem = "rows have a list of another length than the first row"
		}
	}
	if err := p.advance(); err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	return p.row, problem, nil
}

// cellOf returns a function for values of a type, or nil.
func cellOf(t parquet.Type) func(parquet.Value) cell {
	number := func(of func(parquet.Value) float64) func(parquet.Value) cell {
		return func(v parquet.Value) cell { return cell{number: of(v), numeric: true} }
	}
	moment := func(form string, of func(parquet.Value) time.Time) func(parquet.Value) cell {
		return func(v parquet.Value) cell { return cell{text: of(v).UTC().Format(form)} }
	}
	scale := 1.0
	if logical := t.LogicalType(); logical != nil {
		switch l := logical.Value.(type) {
		case *format.DecimalType:
			scale = math.Pow10(int(l.Scale))
		case *format.DateType:
			return moment(time.DateOnly, func(v parquet.Value) time.Time { return time.Unix(int64(v.Int32())*24*3600, 0) })
		case *format.TimestampType:
			unit := l.Unit.Value.Duration()
			perSecond := int64(time.Second / unit)
			return moment("2006-01-02T15:04:05.000000", func(v parquet.Value) time.Time {
				return time.Unix(v.Int64()/perSecond, v.Int64()%perSecond*int64(unit))
			})
		case *format.IntType:
			if !l.IsSigned && t.Kind() == parquet.Int32 {
				return number(func(v parquet.Value) float64 { return float64(v.Uint32()) })
			}
			if !l.IsSigned {
				return number(func(v parquet.Value) float64 { return float64(v.Uint64()) })
			}
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) cell {
			if v.Boolean() {
				return cell{text: "true"}
			}
			return cell{text: "false"}
		}
	case parquet.Int32:
		return number(func(v parquet.Value) float64 { return float64(v.Int32()) / scale })
	case parquet.Int64:
		return number(func(v parquet.Value) float64 { return float64(v.Int64()) / scale })
	case parquet.Float:
		return number(func(v parquet.Value) float64 { return float64(v.Float()) })
	case parquet.Double:
		return number(parquet.Value.Double)
	case parquet.ByteArray:
		if scale != 1 {
			return nil
		}
		return func(v parquet.Value) cell { return cell{text: strings.TrimSpace(string(v.ByteArray()))} }
	default:
		return nil
	}
}
