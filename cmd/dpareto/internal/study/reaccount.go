package study

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/enumflag"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// reaccountFlags say how a study is accounted again.
type reaccountFlags struct {
	metric       string
	delta        float64
	accountant   dparetov1.Accountant
	conversion   dparetov1.Conversion
	adjacency    dparetov1.Adjacency
	validateOnly bool
}

func reaccountCommand(env *command.Env) *cobra.Command {
	var f reaccountFlags
	cmd := remote.Command(env, &cobra.Command{
		Use:   "reaccount STUDY",
		Short: "Recompute ε of all trials for another δ, accountant or adjacency",
		Long: `Computes ε of all trials again, for another δ, accountant or adjacency, without training
again. Omitted settings keep their values. All trials and the study's spec change in one step.

The command shows the spec before and after; accounting again with the former restores the
old values. --validate-only shows the result and changes nothing.`,
		Example: `  dpareto study reaccount adult --delta 1e-6 --validate-only
  dpareto study reaccount adult --accountant tightest`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		handle := call.Handle(call.Args[0])
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		metric := show.PrivacyMetric(study.GetSpec())
		if f.metric != "" {
			i := slices.IndexFunc(study.GetSpec().GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == f.metric })
			if metric = nil; i >= 0 {
				metric = study.GetSpec().GetMetrics()[i]
			}
		}
		if metric.GetComputed().GetPrivacy() == nil {
			return command.Usagef("study reaccount: %s has no metric %q that is computed from a mechanism", handle.Name(), f.metric)
		}
		spec := proto.CloneOf(metric.GetComputed().GetPrivacy())
		f.apply(spec, call.Changed("delta"))
		resp, err := call.Privacy.ReaccountStudy(ctx, &dparetov1.ReaccountStudyRequest{
			Name: handle.Name(), Metric: metric.GetId(), Privacy: spec, ValidateOnly: f.validateOnly, Etag: study.GetEtag(),
		})
		if err != nil {
			return &remote.CallError{Action: "account " + handle.Name() + " again", Err: err}
		}
		return view.Print(call.Out, view.Reaccounting(resp), resp)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.metric, "metric", "", "the privacy metric; default: the study's first")
	flags.Float64Var(&f.delta, "delta", 0, "δ; 0 for a pure guarantee")
	enumflag.Var(flags, &f.accountant, "accountant", "accountant",
		dparetov1.Accountant_ACCOUNTANT_RDP_ODOMETER, dparetov1.Accountant_ACCOUNTANT_ADAPTIVE_COMPOSITION, // of ledgers
		dparetov1.Accountant_ACCOUNTANT_CHERNOFF) // of guarantees
	enumflag.Var(flags, &f.conversion, "conversion", "conversion, with the accountant rdp (default as before, or improved)")
	enumflag.Var(flags, &f.adjacency, "adjacency", "adjacency")
	flags.BoolVar(&f.validateOnly, "validate-only", false, "show the result without storing it")
	return cmd
}

// apply changes a spec as the flags say.
func (f *reaccountFlags) apply(spec *dparetov1.PrivacySpec, changesDelta bool) {
	if changesDelta {
		spec.Delta = f.delta
	}
	before := spec.GetAdjacency()
	spec.Accountant = cmp.Or(f.accountant, spec.GetAccountant())
	spec.Conversion = cmp.Or(f.conversion, spec.GetConversion())
	spec.Adjacency = cmp.Or(f.adjacency, before)
	if m := spec.GetDpSgd(); m != nil && spec.GetAdjacency() != before {
		m.NoiseMultiplier = sameNoise(m.GetNoiseMultiplier(), spec.GetAdjacency())
	}
	isRDP := spec.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_RDP
	switch {
	case isRDP && spec.GetConversion() == dparetov1.Conversion_CONVERSION_UNSPECIFIED:
		spec.Conversion = dparetov1.Conversion_CONVERSION_IMPROVED
	case !isRDP && f.conversion == 0:
		spec.Conversion = dparetov1.Conversion_CONVERSION_UNSPECIFIED
	}
}

// sameNoise returns the multiplier, under another adjacency, of the noise with the given
// multiplier under the present one. Replacing a record instead of removing it doubles the
// sensitivity of a mean of clipped gradients.
func sameNoise(multiplier string, adjacency dparetov1.Adjacency) string {
	there, back := " / 2.0", " * 2.0"
	if adjacency == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
		there, back = back, there
	}
	if inner, ok := strings.CutSuffix(multiplier, ")"+back); ok && strings.HasPrefix(inner, "double(") {
		return strings.TrimPrefix(inner, "double(")
	}
	return "double(" + multiplier + ")" + there
}
