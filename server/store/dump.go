package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
)

// Records passes every key of a store and its value to put, in ascending order but for the summaries,
// whose keys begin with a zero byte and which come last. It stops at the first error and returns it.
// put must not keep the value.
type Records func(put func(key string, value []byte) error) error

// All returns the records of a KV, in one snapshot.
func All(ctx context.Context, kv KV) Records {
	return func(put func(string, []byte) error) error {
		return kv.View(ctx, func(r Reader) error {
			pass := func(key string, value []byte) (bool, error) {
				if err := ctx.Err(); err != nil {
					return false, err
				}
				return true, put(key, value)
			}
			if err := r.Scan("", "", pass); err != nil {
				return err
			}
			return r.Scan(totalPrefix, "", pass)
		})
	}
}

// Sum returns the number of records and a SHA-256 of them.
func (records Records) Sum() (n int64, digest [sha256.Size]byte, err error) {
	d := newDumper(io.Discard)
	if err := records(d.put); err != nil {
		return 0, digest, err
	}
	d.digest.Sum(digest[:0])
	return d.n, digest, nil
}

// DumpHeader begins a dump: the text form of a store, which no kind of store needs to be read. The
// number of the format of its records follows. Each further line has a key, quoted as in Go, and its
// stored value in base64; the last one has the number of records and the SHA-256 of what precedes it.
const DumpHeader = "dpareto store, format "

const dumpEnd = "end "

// WriteDump writes a dump.
func WriteDump(w io.Writer, records Records) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	d := newDumper(buffered)
	if err := records(d.put); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(buffered, "%s%d %x\n", dumpEnd, d.n, d.digest.Sum(nil)); err != nil {
		return Unwritable(err)
	}
	if err := buffered.Flush(); err != nil {
		return Unwritable(err)
	}
	return nil
}

// dumper writes the lines of a dump but the last, and their digest.
type dumper struct {
	to     io.Writer
	digest hash.Hash
	n      int64
	line   []byte
}

func newDumper(w io.Writer) *dumper {
	d := &dumper{digest: sha256.New()}
	d.to = io.MultiWriter(d.digest, w)
	d.line = strconv.AppendInt([]byte(DumpHeader), Format, 10)
	d.line = append(d.line, '\n')
	return d
}

// put writes a record. The first one also writes the header.
func (d *dumper) put(key string, value []byte) error {
	if d.n++; d.n > 1 {
		d.line = d.line[:0]
	}
	d.line = strconv.AppendQuoteToASCII(d.line, key)
	d.line = append(d.line, ' ')
	d.line = base64.StdEncoding.AppendEncode(d.line, value)
	d.line = append(d.line, '\n')
	if _, err := d.to.Write(d.line); err != nil {
		return Unwritable(err)
	}
	return nil
}

// ParseDump returns the records of a dump. They end with an error if the dump is not whole, so that
// the records before are not to be used.
func ParseDump(r io.Reader) Records {
	return func(put func(string, []byte) error) error {
		lines := bufio.NewReaderSize(r, 1<<16)
		digest := sha256.New()
		var n int64
		for number := 1; ; number++ {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return fmt.Errorf("%w: the dump ends in line %d: %w", ErrCorrupt, number, err)
			}
			text := bytes.TrimSuffix(line, []byte("\n"))
			if end, ok := bytes.CutPrefix(text, []byte(dumpEnd)); ok {
				if want := fmt.Sprintf("%d %s", n, hex.EncodeToString(digest.Sum(nil))); string(end) != want {
					return fmt.Errorf("%w: the dump ends with %q, must end with %q", ErrCorrupt, end, want)
				}
				if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
					return fmt.Errorf("%w: the dump goes on after its end in line %d", ErrCorrupt, number)
				}
				return nil
			}
			digest.Write(line)
			if number == 1 {
				if format := string(bytes.TrimPrefix(text, []byte(DumpHeader))); format != strconv.Itoa(Format) {
					return FormatError("a dump with the header " + strconv.Quote(string(text)))
				}
				continue
			}
			key, value, err := parseRecord(text)
			if err != nil {
				return fmt.Errorf("%w: line %d of the dump: %w", ErrCorrupt, number, err)
			}
			n++
			if err := put(key, value); err != nil {
				return err
			}
		}
	}
}

// parseRecord parses a record's line.
func parseRecord(line []byte) (key string, value []byte, err error) {
	quoted, err := strconv.QuotedPrefix(string(line))
	if err != nil {
		return "", nil, err
	}
	if key, err = strconv.Unquote(quoted); err != nil {
		return "", nil, err
	}
	value, err = base64.StdEncoding.DecodeString(string(bytes.TrimPrefix(line[len(quoted):], []byte(" "))))
	return key, value, err
}
