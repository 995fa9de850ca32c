package view

import (
	"bytes"
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

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

// WriteLine prints a message as one line of JSON.
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

// indent prints JSON with regular white space; protojson varies it.
func indent(w io.Writer, encoded []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, encoded, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := out.WriteTo(w)
	return err
}

// Print prints a message: as a table, or as JSON.
func Print(p *command.Printer, table *output.Table, message proto.Message) error {
	if p.Format == output.JSON {
		return WriteMessage(p, message)
	}
	return p.Table(table)
}

// PrintAll prints messages: as a table, or as a JSON array.
func PrintAll[M proto.Message](p *command.Printer, table *output.Table, messages []M) error {
	if p.Format == output.JSON {
		return WriteMessages(p, messages)
	}
	return p.Table(table)
}
