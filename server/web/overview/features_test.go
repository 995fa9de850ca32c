package overview_test

import (
	"net/http"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// The page says whether models see features of DP-SGD.
func TestFeatures(t *testing.T) {
	s := webtest.New(t, server.Options{})
	spec := privacySpec()
	spec.Algorithm = nil
	sgd := &dparetov1.DpSgdMechanism{
		Sampling: dparetov1.Sampling_SAMPLING_POISSON, Convention: dparetov1.Convention_CONVENTION_ROUNDED, DatasetSize: "1000", BatchSize: "100",
		NoiseMultiplier: "sigma", Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "epochs"},
	}
	spec.GetMetrics()[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: sgd}
	s.Create(t.Context(), t, "off", &dparetov1.Study{Spec: spec})
	webtest.Contains(t, s.Get(t, "/studies/off", http.StatusOK), "Features of DP-SGD</dt><dd>off; add learning_rate and clipping_norm to dp_sgd of metric epsilon")
	sgd.LearningRate, sgd.ClippingNorm = "0.1 < 1.0 ? 0.25 : 0.5", "1.0"
	s.Create(t.Context(), t, "on", &dparetov1.Study{Spec: spec})
	webtest.Contains(t, s.Get(t, "/studies/on", http.StatusOK), "Features of DP-SGD</dt><dd>on: learning rate 0.1 &lt; 1.0 ? 0.25 : 0.5, clipping norm 1.0</dd>")
}
