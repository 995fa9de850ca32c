package rest_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/dpareto/dpareto/internal/require"
)

// endless is a text that goes on for as long as anybody reads it, up to a bound that no
// server should reach.
type endless struct {
	begin string
	read  atomic.Int64 // the client may still send when the answer is there
}

const tooMuch = 64 << 20

func (e *endless) Read(p []byte) (int, error) {
	if e.read.Load() >= tooMuch {
		return 0, io.EOF
	}
	n := copy(p, e.begin)
	e.begin = e.begin[n:]
	for i := n; i < len(p); i++ {
		p[i] = 'x'
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// One message of a stream is limited as a body is: else anybody fills the memory with one
// that has no end.
func TestEndlessMessage(t *testing.T) {
	url := start(t)
	text := &endless{begin: `{"record": {"trial": {"completion_token": "`}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/studies:import", text)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		if s, _ := failure(t, string(answer)); resp.StatusCode != http.StatusRequestEntityTooLarge || codes.Code(s.GetCode()) != codes.ResourceExhausted {
			t.Errorf("got %d %s", resp.StatusCode, answer)
		}
	}
	if text.read.Load() >= tooMuch {
		t.Error("the server read all of it")
	}
}

// The messages of a stream may have any size together.
func TestLongStream(t *testing.T) {
	url := start(t)
	line := `{"record": {"trial": {"completion_token": "` + strings.Repeat("x", 1<<20) + `"}}}` + "\n"
	code, answer := do(t, http.MethodPost, url+"/v1/studies:import", strings.Repeat(line, 8))
	if s, _ := failure(t, answer); code != http.StatusBadRequest || !strings.Contains(s.GetMessage(), "comes before the study") {
		t.Errorf("got %d %s", code, answer)
	}
}
