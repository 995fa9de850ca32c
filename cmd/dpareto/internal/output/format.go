package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Format is a form in which data are printed. It implements pflag.Value.
type Format string

// The formats.
const (
	Text Format = "table" // for people
	JSON Format = "json"
	CSV  Format = "csv"
)

// formats are all formats, in the order in which they are shown.
var formats = []Format{Text, JSON, CSV}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *Format) Set(name string) error {
	if !slices.Contains(formats, Format(name)) {
		return fmt.Errorf("want %s", Names(formats...))
	}
	*f = Format(name)
	return nil
}

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Names returns the names of formats, separated by commas.
func Names(formats ...Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// WriteMessage prints a message as JSON.
func WriteMessage(w io.Writer, message proto.Message) error {
	encoded, err := encode(message)
	if err != nil {
		return err
	}
	return indent(w, encoded)
}

// WriteMessages prints messages as a JSON array.
func WriteMessages[M proto.Message](w io.Writer, messages []M) error {
	elements := make([]json.RawMessage, len(messages))
	for i, message := range messages {
		encoded, err := encode(message)
		if err != nil {
			return err
		}
		elements[i] = encoded
	}
	encoded, err := json.Marshal(elements)
	if err != nil {
		return err
	}
	return indent(w, encoded)
}

// WriteLine prints a message as JSON on a line of its own.
func WriteLine(w io.Writer, message proto.Message) error {
	encoded, err := encode(message)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, encoded); err != nil { // the white space of protojson is random
		return err
	}
	line.WriteByte('\n')
	_, err = line.WriteTo(w)
	return err
}

func encode(message proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
}

// indent prints JSON with its white space made regular, which that of protojson is not.
func indent(w io.Writer, encoded []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, encoded, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := out.WriteTo(w)
	return err
}
