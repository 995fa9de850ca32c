package rest

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// bodyError prefixes errors in a request body, which the gateway passes on as text.
const bodyError = "request body: "

// codec reads and writes JSON with the field names of the contract. Unknown fields are errors.
type codec struct{ runtime.JSONPb }

func newCodec() *codec {
	return &codec{runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{UseProtoNames: true}}}
}

// NewDecoder implements runtime.Marshaler.
func (c *codec) NewDecoder(r io.Reader) runtime.Decoder {
	decoder := c.JSONPb.NewDecoder(r)
	limited, _ := r.(*body)
	return runtime.DecoderFunc(func(v any) error {
		err := decoder.Decode(v)
		if err == nil && limited != nil {
			limited.endMessage()
		}
		if err == nil || errors.Is(err, io.EOF) {
			return err
		}
		// protojson deliberately varies the white space in its messages.
		text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "proto:"), "\u00a0", " ")
		return errors.New(bodyError + strings.TrimSpace(text))
	})
}

// queryParser is the gateway's parser, but refuses unknown parameters.
type queryParser struct{ runtime.DefaultQueryParser }

// Parse implements runtime.QueryParameterParser.
func (p queryParser) Parse(message proto.Message, values url.Values, filter *utilities.DoubleArray) error {
	for key := range values {
		// A map entry is written as field[key].
		path := strings.Split(strings.SplitN(key, "[", 2)[0], ".")
		if !hasField(message.ProtoReflect().Descriptor(), path) {
			return fmt.Errorf("%sunknown parameter %q", queryError, key)
		}
		if filter.HasCommonPrefix(path) {
			return fmt.Errorf("%sparameter %q belongs in the path or the body", queryError, key)
		}
		if slices.Contains(values[key], "") && len(values[key]) == 1 {
			return fmt.Errorf("%sparameter %q is empty", queryError, key)
		}
	}
	if err := p.DefaultQueryParser.Parse(message, values, filter); err != nil {
		return fmt.Errorf("%s%w", queryError, err)
	}
	return nil
}

// queryError prefixes errors in a URL's query.
const queryError = "query: "

// hasField reports whether a message has a field at the path.
func hasField(message protoreflect.MessageDescriptor, path []string) bool {
	for _, name := range path {
		if message == nil {
			return false
		}
		field := message.Fields().ByTextName(name)
		if field == nil {
			field = message.Fields().ByJSONName(name)
		}
		if field == nil {
			return false
		}
		message = field.Message()
	}
	return true
}
