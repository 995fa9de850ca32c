package enumflag

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestVar(t *testing.T) {
	value := dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Var(flags, &value, "adjacency", "adjacency of the guarantee")
	if flag := flags.Lookup("adjacency"); flag.DefValue != "replace-one" || flag.Usage != "adjacency of the guarantee: add-remove or replace-one" {
		t.Errorf("default %q, usage %q", flag.DefValue, flag.Usage)
	}
	for _, text := range []string{"add-remove", "ADD_REMOVE"} {
		value = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
		if err := flags.Set("adjacency", text); err != nil || value != dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
			t.Errorf("%s: %v, %v", text, value, err)
		}
	}
	for _, text := range []string{"", "unspecified", "swap"} {
		if err := flags.Set("adjacency", text); err == nil || !strings.Contains(err.Error(), "must be add-remove or replace-one") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
