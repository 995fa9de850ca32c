package output

import (
	"fmt"
	"slices"
	"strings"
)

// Format is a format in which data are printed. It implements pflag.Value.
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
		return fmt.Errorf("must be one of %s", Names(formats...))
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
