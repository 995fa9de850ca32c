package studyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/document"
)

const (
	// Fields of a file beside the fields of the study.
	idField      = "study_id"
	ledgersField = "ledgers"
	// Prefixes of the names of studies and ledgers, which a file may leave out.
	studyPrefix  = "studies/"
	ledgerPrefix = "ledgers/"
)

// File is the content of a file.
type File struct {
	// ID under which the study is to be created: the file's study_id or, for a study
	// that a server returned, the id in its name. Empty if the file has neither.
	ID string
	// Study to create. Its name is empty.
	Study *dparetov1.Study
	// Ledgers to create before the study, unless they exist.
	Ledgers []*dparetov1.Ledger
}

// Parse reads a YAML or JSON file. It refuses unknown and repeated fields, and names all
// wrong fields in its error.
func Parse(content []byte) (*File, error) {
	parsed, err := document.Parse(content)
	if err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	fields, ok := parsed.Root.(map[string]any)
	if !ok {
		return nil, errors.New("the file holds no study: it must be a mapping with the fields study_id and spec")
	}
	return read(fields, parsed.Line)
}

// FromTree is Parse for the tree of a document.Document, which it changes.
func FromTree(fields map[string]any) (*File, error) {
	return read(fields, func(string) int { return 0 })
}

// read returns the study in a tree. line returns the line of a path, 0 if it is unknown.
func read(fields map[string]any, line func(path string) int) (*File, error) {
	n := normaliser{line: line}
	file := &File{Study: new(dparetov1.Study)}
	if id, ok := fields[idField]; ok {
		if file.ID, ok = stringOf(id); !ok && id != nil {
			n.addf(idField, "must be a string, is %s%s", describe(id), quoteHint(id))
		}
		delete(fields, idField)
	}
	beside := make(map[string]any)
	if ledgers, ok := fields[ledgersField]; ok {
		beside[ledgersField] = ledgers
		delete(fields, ledgersField)
	}
	var ledgers dparetov1.ListLedgersResponse
	n.message("", fields, file.Study.ProtoReflect().Descriptor())
	n.message("", beside, ledgers.ProtoReflect().Descriptor())
	if err := errors.Join(n.faults...); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if err := errors.Join(decode(fields, file.Study), decode(beside, &ledgers)); err != nil {
		return nil, err
	}
	file.Ledgers = ledgers.GetLedgers()
	if file.ID == "" {
		file.ID = file.Study.GetName()
	}
	file.ID = strings.TrimPrefix(file.ID, studyPrefix)
	file.Study.Name = ""
	file.completeNames()
	return file, nil
}

// completeNames gives names of studies and ledgers without their prefix the prefix: like arguments of
// commands, files may name either way.
func (f *File) completeNames() {
	if s := f.Study.GetSpec(); s != nil {
		s.TestLedger, s.TrainLedger = prefixed(ledgerPrefix, s.GetTestLedger()), prefixed(ledgerPrefix, s.GetTrainLedger())
		for i, prior := range s.GetPriorStudies() {
			s.PriorStudies[i] = prefixed(studyPrefix, prior)
		}
	}
	for _, l := range f.Ledgers {
		l.Name = prefixed(ledgerPrefix, l.GetName())
	}
}

// prefixed returns a resource name with its prefix. An empty name stays.
func prefixed(prefix, name string) string {
	if name == "" || strings.HasPrefix(name, prefix) {
		return name
	}
	return prefix + name
}

// Decode reads a message from JSON as commands print it, or from protobuf's own. It takes a parameter's
// value without a point for an integer, even where a study would say otherwise.
func Decode(content []byte, to proto.Message) error {
	value, err := document.ParseJSON(content)
	if err != nil {
		return err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("must be an object, is %s", describe(value))
	}
	n := normaliser{line: func(string) int { return 0 }}
	n.message("", fields, to.ProtoReflect().Descriptor())
	if err := errors.Join(n.faults...); err != nil {
		return err
	}
	return decode(fields, to)
}

// decode converts a tree in protobuf's JSON mapping to a message.
func decode(tree map[string]any, to proto.Message) error {
	normal, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal(normal, to); err != nil {
		return errors.New(plain(err))
	}
	return nil
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
