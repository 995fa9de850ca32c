package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	// idxUint8 is the code of unsigned bytes in the header of an idx file.
	idxUint8 = 0x08
	// idxMaxDims bounds the number of dimensions of an idx file.
	idxMaxDims = 8
	// idxPrefix is how much memory is reserved at once for an idx file: more follows as
	// the bytes arrive, whatever the header says.
	idxPrefix = 64 << 20
)

// ReadIDX reads an array of unsigned bytes in the idx format of MNIST (LeCun, Cortes and
// Burges 1998): two zero bytes, the type 8, the number of dimensions, the size of each as
// a big-endian 32-bit number, and the elements, of which the last index varies fastest.
// There are 1 to 8 dimensions. The input may be compressed with gzip.
//
// Malformed input gives a *SyntaxError with the offset, counted after decompression.
func ReadIDX(r io.Reader, file string) (sizes []int, elements []byte, err error) {
	r, err = Gunzip(r)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	fail := func(offset int, format string, args ...any) error {
		return &SyntaxError{File: file, Offset: int64(offset), Reason: fmt.Sprintf(format, args...)}
	}
	var magic [4]byte
	if n, err := io.ReadFull(r, magic[:]); err != nil {
		return nil, nil, orShort(err, file, fail(n, "the header ends early"))
	}
	switch {
	case magic[0] != 0 || magic[1] != 0:
		return nil, nil, fail(0, "begins with % x, want 00 00", magic[:2])
	case magic[2] != idxUint8:
		return nil, nil, fail(2, "elements of type 0x%02x, want unsigned bytes (0x08)", magic[2])
	case magic[3] < 1 || magic[3] > idxMaxDims:
		return nil, nil, fail(3, "%d dimensions, want 1 to %d", magic[3], idxMaxDims)
	}
	header := make([]byte, 4*int(magic[3]))
	if n, err := io.ReadFull(r, header); err != nil {
		return nil, nil, orShort(err, file, fail(len(magic)+n, "the header ends early"))
	}
	const limit = 1 << 40
	total := 1
	for at := 0; at < len(header); at += 4 {
		size := int(binary.BigEndian.Uint32(header[at:]))
		if total > 0 && size > limit/total {
			return nil, nil, fail(len(magic)+at, "the array has more than 2⁴⁰ elements")
		}
		total *= size
		sizes = append(sizes, size)
	}
	start := len(magic) + len(header)
	var content bytes.Buffer
	content.Grow(min(total, idxPrefix) + bytes.MinRead)
	n, err := io.Copy(&content, io.LimitReader(r, int64(total)+1))
	switch {
	case err != nil:
		return nil, nil, orShort(err, file, fail(start+int(n), "ends after %d of %d elements", n, total))
	case n < int64(total):
		return nil, nil, fail(start+int(n), "ends after %d of %d elements", n, total)
	case n > int64(total):
		return nil, nil, fail(start+total, "has more than %d elements", total)
	}
	return sizes, content.Bytes(), nil
}

// orShort returns short if err means that the input ended, and otherwise err with the
// name of the file.
func orShort(err error, file string, short error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return short
	}
	return fmt.Errorf("%s: %w", file, err)
}

// LoadIDX reads images and their labels from two idx files, as of MNIST and similar sets.
// The dataset is dense: a row has the pixels of an image, divided by 255, the largest
// value of a pixel. There are at least 2 classes, or it panics; labels are as in Dataset.
// The dataset is named after the file of images.
//
// Malformed files give a *SyntaxError; a different number of images and labels is
// also an error.
func LoadIDX(images, labels string, classes int) (*Dataset, error) {
	if classes < 2 {
		panic("dataset: fewer than two classes")
	}
	sizes, pixels, err := loadIDX(images)
	if err != nil {
		return nil, err
	}
	labelSizes, labelBytes, err := loadIDX(labels)
	if err != nil {
		return nil, err
	}
	if len(labelSizes) != 1 {
		return nil, &SyntaxError{File: labels, Offset: 3, Reason: fmt.Sprintf("%d dimensions, want 1", len(labelSizes))}
	}
	rows := sizes[0]
	if rows != len(labelBytes) {
		return nil, fmt.Errorf("%s has %d images, %s %d labels", images, rows, labels, len(labelBytes))
	}
	d := &Dataset{
		Name:    filepath.Base(images),
		Rows:    rows,
		Dim:     1,
		Classes: classes,
		Dense:   make([]float32, len(pixels)),
		Labels:  make([]float32, rows),
	}
	for _, size := range sizes[1:] {
		d.Dim *= size
	}
	var scaled [256]float32
	for i := range scaled {
		scaled[i] = float32(i) / 255
	}
	for i, pixel := range pixels {
		d.Dense[i] = scaled[pixel]
	}
	const header = 8 // bytes, of a file of one dimension
	for i, label := range labelBytes {
		if int(label) >= classes {
			return nil, &SyntaxError{File: labels, Offset: header + int64(i), Reason: fmt.Sprintf("label %d, want less than %d", label, classes)}
		}
		d.Labels[i] = classLabel(int(label), classes)
	}
	return d, nil
}

func loadIDX(path string) (sizes []int, elements []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	sizes, elements, err = ReadIDX(f, path)
	return sizes, elements, errors.Join(err, f.Close())
}
