package invalid

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestEmpty(t *testing.T) {
	var f Fields
	if err := f.Err(); err != nil || !f.Empty() {
		t.Errorf("error %v of no violations", err)
	}
}

// However much is wrong, the error fits into the headers that clients accept (8 KiB),
// and says how much it leaves out.
func TestErrorIsBounded(t *testing.T) {
	var f Fields
	for i := range 10_000 {
		f.Addf(fmt.Sprintf("runs[%d]", i), "must be finite, is %s", strings.Repeat("ü", 1000))
	}
	s := status.Convert(f.Err())
	if s.Code() != codes.InvalidArgument || !strings.Contains(s.Message(), "and 9995 more") || !utf8.ValidString(s.Message()) {
		t.Errorf("status %.300v", s)
	}
	details := s.Details()[0].(*errdetails.BadRequest)
	if n := len(details.GetFieldViolations()); n < maxDetails/(2*maxDescription) || n > maxViolations {
		t.Errorf("%d violations in the details", n)
	}
	size := len(s.Message())
	for _, v := range details.GetFieldViolations() {
		size += len(v.GetField()) + len(v.GetDescription())
	}
	if size > 6<<10 {
		t.Errorf("%d bytes", size)
	}
}
