package load

import (
	"fmt"

	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// studyID returns the id of the i-th study, from 0.
func studyID(i int) string { return fmt.Sprintf("load-%04d", i) }

// newStudy returns a study without end: two parameters, one computed and one reported
// objective, and a designer.
func newStudy(algorithm dparetov1.Algorithm) (*dparetov1.Study, error) {
	content, err := studies.File("svt")
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	spec := file.Study.GetSpec()
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm}
	spec.Budget, spec.Replicates = nil, 1
	spec.Seed = new(uint64)
	return file.Study, nil
}
