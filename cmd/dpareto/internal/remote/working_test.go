package remote

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// A terminal shows what a server does in a call of more than a second, and nothing of it remains.
func TestSlowCallsAreShown(t *testing.T) {
	const removed = "\r\x1b[J"
	size := func() (width, height int) { return 80, 24 }
	for _, tt := range []struct {
		method   string
		terminal bool
		takes    time.Duration
		want     string // "" for nothing
	}{
		{dparetov1.FrontService_QueryFront_FullMethodName, true, 5 * time.Second, "fitting the model …"},
		{dparetov1.FrontService_GetFront_FullMethodName, true, time.Second + 1, "fitting the model …"},
		{dparetov1.AnalysisService_CrossValidate_FullMethodName, true, 5 * time.Second, "fitting the model …"},
		{dparetov1.PrivacyService_PriceSearch_FullMethodName, true, 5 * time.Second, "computing ε …"},
		{dparetov1.StudyService_ListTrials_FullMethodName, true, 5 * time.Second, "waiting for the server …"},
		{dparetov1.FrontService_QueryFront_FullMethodName, true, time.Second - 1, ""},
		{dparetov1.FrontService_QueryFront_FullMethodName, false, 5 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var screen bytes.Buffer
			env := &command.Env{Console: console.New(&screen)}
			if tt.terminal {
				env.Console = console.NewTerminal(&screen, size)
			}
			failed := errors.New("the answer")
			err := showWork(env)(t.Context(), tt.method, nil, nil, nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					time.Sleep(tt.takes) // on the clock of the bubble
					synctest.Wait()
					if got := screen.String(); tt.want != "" && (!strings.Contains(got, tt.want) || strings.HasSuffix(got, removed)) {
						t.Errorf("%s during the call: %q, want %q", tt.method, got, tt.want)
					}
					return failed
				})
			if !errors.Is(err, failed) {
				t.Errorf("error %v", err)
			}
			if got := screen.String(); (got == "") != (tt.want == "") || got != "" && !strings.HasSuffix(got, removed) {
				t.Errorf("%s after the call: %q", tt.method, got)
			}
		})
	}
}
