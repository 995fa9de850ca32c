package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ln E[(t - X)+] and its derivatives, by 40-digit quadrature and central
// differences of it in mpmath.
func TestLogShortfall(t *testing.T) {
	for _, tc := range []struct {
		distribution       Distribution
		t                  float64
		want, mean, stdDev float64
	}{
		{Distribution{Gaussian, 0.3, 0.001}, 0.266, -592.88200220422983, -34058.6717898, 1158994.84085},
		{Distribution{Gaussian, 0.3, 0.001}, 0.291, -52.756696571651242, -9214.62761293, 83931.6485163},
		{Distribution{Gaussian, 0.3, 0.001}, 0.29869999999999997, -9.9971838694148158, -2126.17653304, 3764.02949296},
		{Distribution{Gaussian, 0.3, 0.001}, 0.30019999999999997, -7.5872073947805428, -1142.76156908, 771.447686183},
		{Distribution{Gaussian, 0.3, 0.001}, 0.3025, -5.9906632133899717, -397.197718384, 7.00570404065},
		{Distribution{Gaussian, 0.3, 0.001}, 0.307, -4.9618451299267977, -142.857142857, 1.30496005834e-9},
		{Distribution{Gaussian, 0.3, 0.001}, 0.312, -4.4228486291941359, -83.3333333333, 0.0},
		{Distribution{Gaussian, 0.3, 0.4}, -13.3, -586.89053765712273, -85.1466794745, 2897.48710213},
		{Distribution{Gaussian, 0.3, 0.4}, -3.3000000000000003, -46.76523202454319, -23.0365690323, 209.829121291},
		{Distribution{Gaussian, 0.3, 0.4}, -0.22000000000000003, -4.0057193223067841, -5.31544133261, 9.41007373239},
		{Distribution{Gaussian, 0.3, 0.4}, 0.38, -1.5957428476725356, -2.85690392271, 1.92861921546},
		{Distribution{Gaussian, 0.3, 0.4}, 1.3, 0.00080133371800950733, -0.992994295959, 0.0175142601016},
		{Distribution{Gaussian, 0.3, 0.4}, 3.1, 1.0296194171811834, -0.357142857142, 3.26240014584e-12},
		{Distribution{Gaussian, 0.3, 0.4}, 5.1000000000000005, 1.5686159179138454, -0.208333333333, 0.0},
		{Distribution{Gaussian, 0.3, 4}, -135.7, -584.58795256412859, -8.51466794745, 289.748710213},
		{Distribution{Gaussian, 0.3, 4}, -35.7, -44.462646931549149, -2.30365690323, 20.9829121291},
		{Distribution{Gaussian, 0.3, 4}, -4.9, -1.7031342293127387, -0.531544133261, 0.941007373239},
		{Distribution{Gaussian, 0.3, 4}, 1.1, 0.70684224532151001, -0.285690392271, 0.192861921546},
		{Distribution{Gaussian, 0.3, 4}, 10.3, 2.3033864267120552, -0.0992994295959, 0.00175142601016},
		{Distribution{Gaussian, 0.3, 4}, 28.3, 3.3322045101752291, -0.0357142857142, 3.26240014584e-13},
		{Distribution{Gaussian, 0.3, 4}, 48.3, 3.8712010109078909, -0.0208333333333, 0.0},
		{Distribution{LogNormal, -1.0, 0.001}, 0.35558178497828613, -593.91603153969475, -34058.6709314, 1158994.78233},
		{Distribution{LogNormal, -1.0, 0.001}, 0.36458338072130303, -53.765803879822744, -9214.61647084, 83931.440935},
		{Distribution{LogNormal, -1.0, 0.001}, 0.36740150862138576, -10.998896888686985, -2126.0548663, 3763.4583759},
		{Distribution{LogNormal, -1.0, 0.001}, 0.36795302441775596, -8.587678622882879, -1142.52888025, 770.823148495},
		{Distribution{LogNormal, -1.0, 0.001}, 0.368800290356243, -6.9896113210761268, -396.773320119, 6.61908308349},
		{Distribution{LogNormal, -1.0, 0.001}, 0.37046363137324734, -5.9584142696752016, -142.367930959, -0.142367929649},
		{Distribution{LogNormal, -1.0, 0.001}, 0.3723205880531552, -5.4168840472360761, -82.8378056562, -0.0828378056562},
		{Distribution{LogNormal, -1.0, 0.4}, 4.563526367903986e-07, -601.50220381657814, -85.1458310126, 2897.42925821},
		{Distribution{LogNormal, -1.0, 0.4}, 0.010051835744633586, -51.407280127181882, -23.0258663329, 209.629812078},
		{Distribution{LogNormal, -1.0, 0.4}, 0.21871188695221475, -5.6806820095669733, -5.20638580723, 8.90478321},
		{Distribution{LogNormal, -1.0, 0.4}, 0.3985190410845142, -2.7618781765876034, -2.6541876922, 1.40516902804},
		{Distribution{LogNormal, -1.0, 0.4}, 1.0, -0.50684919799997843, -0.649744079442, -0.230799733605},
		{Distribution{LogNormal, -1.0, 0.4}, 6.049647464412947, 1.7318552461599424, -0.0705202591807, -0.0282081036625},
		{Distribution{LogNormal, -1.0, 0.4}, 44.70118449330086, 3.791044843462643, -0.00899537391298, -0.00359814956519},
		{Distribution{LogNormal, -1.0, 4}, 3.1743585474772134e-60, -721.6989160762685, -8.51389944951, 289.696322019},
		{Distribution{LogNormal, -1.0, 4}, 8.533047625744066e-17, -81.820790482189863, -2.29577507811, 20.8365431354},
		{Distribution{LogNormal, -1.0, 4}, 0.002029430636295734, -8.9255123241814385, -0.477585069838, 0.705469694462},
		{Distribution{LogNormal, -1.0, 4}, 0.8187307530779819, -0.92907592976026668, -0.200900360694, 0.00709418232913},
		{Distribution{LogNormal, -1.0, 4}, 8103.083927575384, 8.9846314699800351, -0.00918139733489, -0.0189258239687},
		{Distribution{LogNormal, -1.0, 4}, 532048240601.79865, 26.999999997940349, -2.05837127946e-9, -8.22435039741e-9},
		{Distribution{LogNormal, -1.0, 4}, 2.5813128861900675e+20, 47.0, -4.24835425529e-18, -1.69934170212e-17},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -2.0833975529060256, -592.14797286790821, 34058.6726482, 1158994.89938},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -2.031958284044819, -52.047589252209932, 9214.63875731, 83931.8561409},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -2.0163722883488346, -9.2954707121278719, 2126.29826916, 3764.60097623},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -2.0133499972013515, -6.8867358612461766, 1142.99442398, 772.072801522},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -2.0087246134381394, -5.2917141231443978, 397.622559873, 7.39318205509},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -1.9997056605411638, -4.2652714119487608, 143.347522879, 0.143347524179},
		{Distribution{NegatedLogNormal, 0.7, 0.001}, -1.9897320869507038, -3.7288007129026927, 83.830861295, 0.083830861295},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -1623345.9850084595, -572.57873402898068, 85.1475480154, 2897.54631614},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -73.69979369959579, -42.421379615776, 23.0481897815, 210.045721961},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -3.3871877336213347, -2.6085581688383843, 5.45245170842, 10.063279865},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -1.8589280418463419, -0.68043911513703675, 3.12640925504, 2.68604555935},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -0.7408182206817179, 0.36546503826162911, 1.51084244469, 0.613347127765},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -0.12245642825298185, 0.72222811973303456, 1.05947328138, 0.423789312552},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, -0.016572675401761237, 0.77237398167058573, 1.00765517046, 0.403062068186},
		{Distribution{NegatedLogNormal, 0.7, 4}, -2.3337572287493063e+59, -447.7631484265226, 8.51563997794, 289.814986604},
		{Distribution{NegatedLogNormal, 0.7, 4}, -8681754200535380.0, -7.2076023667320397, 2.32240659334, 21.334797383},
		{Distribution{NegatedLogNormal, 0.7, 4}, -365.0374678653289, 8.6906025647657043, 1.00594202174, 4.03428741342},
		{Distribution{NegatedLogNormal, 0.7, 4}, -0.9048374180359595, 8.6998993355872094, 1.00008732239, 4.00040823855},
		{Distribution{NegatedLogNormal, 0.7, 4}, -9.142423147817327e-05, 8.6999999848244332, 1.00000001514, 4.00000006081},
		{Distribution{NegatedLogNormal, 0.7, 4}, -1.3923891935884977e-12, 8.6999999999999997, 1.0, 4.0},
		{Distribution{NegatedLogNormal, 0.7, 4}, -2.8699280302092445e-21, 8.7, 1.0, 4.0},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.2254820990639645, -594.62704732385804, -34058.6713185, 1158994.80872},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.2298780372560052, -54.488167316676586, -9214.62159237, 83931.5363509},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.2312440344622386, -11.724669343877786, -2126.11109691, 3763.72231633},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.23151079729985838, -9.3140255340537638, -1142.6365145, 771.111999384},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.23192025112787762, -7.7166637235550349, -396.969820449, 6.7979553459},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.2327228175737989, -6.6865710027833366, -142.594656371, -0.0765803562831},
		{Distribution{LogitNormal, -1.2, 0.001}, 0.23361682498897077, -6.1462204078502384, -83.0676585921, -0.04461142627},
		{Distribution{LogitNormal, -1.2, 0.4}, 3.736297983892476e-07, -601.70220455527004, -85.1458310132, 2897.42925825},
		{Distribution{LogitNormal, -1.2, 0.4}, 0.008162571153159897, -51.623025736816894, -23.0260215374, 209.632699956},
		{Distribution{LogitNormal, -1.2, 0.4}, 0.15187116365665929, -6.1700050660479566, -5.23093897107, 9.01616003196},
		{Distribution{LogitNormal, -1.2, 0.4}, 0.24601128355105195, -3.4278087951743792, -2.72258347191, 1.57160209079},
		{Distribution{LogitNormal, -1.2, 0.4}, 0.45016600268752216, -1.5531523448958381, -0.827722724094, -0.144617280433},
		{Distribution{LogitNormal, -1.2, 0.4}, 0.8320183851339246, -0.52216827158642071, -0.297816498208, -0.0589289753961},
		{Distribution{LogitNormal, -1.2, 0.4}, 0.973403006423134, -0.30840534547399376, -0.24049867806, -0.0475874935336},
		{Distribution{LogitNormal, -1.2, 4}, 2.598944964115577e-60, -721.89891607626839, -8.51389944951, 289.696322019},
		{Distribution{LogitNormal, -1.2, 4}, 6.986268508675704e-17, -82.020790482189873, -2.29577507811, 20.8365431354},
		{Distribution{LogitNormal, -1.2, 4}, 0.0016588010801744215, -9.1275037447782541, -0.477612628276, 0.705576902248},
		{Distribution{LogitNormal, -1.2, 4}, 0.401312339887548, -1.6981178907359135, -0.209914478126, 0.0205178795342},
		{Distribution{LogitNormal, -1.2, 4}, 0.9998492896419403, -0.4977355331443266, -0.144423327983, -0.0364540519939},
		{Distribution{LogitNormal, -1.2, 0.4}, 1.0, -0.27284012461992164, -0.232095603781, -0.0459247765235},
		{Distribution{LogitNormal, 2.0, 1.5}, 1.0, -1.6604496843021866, -0.614904803607, 0.375064605989},
		{Distribution{LogitNormal, -1.2, 0.4}, 1.5, 0.23207512765473396, -0.140082862115, -0.0277182076377},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, 0.0, 0.77999999999999996, 1.0, 0.4},
		{Distribution{NegatedLogNormal, 0.7, 0.4}, 3.0, 1.6450892370268644, 0.421013980915, 0.168405592366},
		{Distribution{LogitNormal, -0.5, 0.2}, 0.4008319133805428, -3.4429736610401041, -4.9022760289, 2.37498815952},
		{Distribution{LogitNormal, -0.5, 0.3}, 0.3881726309982629, -3.4364809889828759, -3.82096489987, 2.52959743522},
		{Distribution{LogitNormal, -0.5, 0.7}, 0.4452207648927852, -2.3524451296094568, -1.3920356659, 0.599526217075},
		{Distribution{LogitNormal, -0.5, 1.0}, 2.3016038567187695e-13, -445.74365020317983, -28.6685069934, 820.885632311},
		{Distribution{LogitNormal, -0.5, 2.0}, 0.8175744761936437, -0.89816475392349184, -0.333642969547, -0.0138649484855},
	} {
		tol := 1e-11
		if tc.distribution.Family == LogitNormal {
			tol = 1e-8
		}
		// At a quantile z a relative error of 1e-16 in t is one of 1e-16·|z|/s, and
		// the slope in the latent value is up to |z|/s.
		z := tc.distribution.standardize(tc.t)
		if !math.IsInf(z, 0) {
			tol += 1e-15 * (1 + math.Abs(z)) / tc.distribution.StdDev
		}
		got, d := tc.distribution.LogShortfall(tc.t)
		near(t, tc.distribution, tc.t, "LogShortfall", got, tc.want, tol)
		tol *= 10 * math.Max(1, math.Hypot(tc.mean, tc.stdDev))
		near(t, tc.distribution, tc.t, "derivative in Mean", d.Mean, tc.mean, tol)
		near(t, tc.distribution, tc.t, "derivative in StdDev", d.StdDev, tc.stdDev, tol)
	}
}

// near fails unless got is within tol·max(1, |want|) of want.
func near(t *testing.T, at any, x float64, name string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))) {
		t.Errorf("%v at %g: %s = %.15g, want %.15g (off by %.1e)", at, x, name, got, want, got-want)
	}
}

// slope is the central difference quotient of f at x.
func slope(f func(float64) float64, x, h float64) float64 {
	return (f(x+h) - f(x-h)) / (2 * h)
}

// Derivatives agree with differences wherever z and s lie, across every change
// of method.
func TestLogShortfallDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 4000 {
		l := Distribution{families[rng.IntN(4)], rng.NormFloat64(), math.Exp(rng.Float64()*6 - 5)}
		z := 10 * rng.NormFloat64()
		if l.Family == NegatedLogNormal {
			z = -z
		}
		at := l.Quantile(z)
		if l.Family == LogitNormal && (at < 1e-200 || 1-at < 1e-9) {
			continue // a rounded t has another logit
		}
		value := func(mean, stdDev float64) float64 {
			v, _ := Distribution{l.Family, mean, stdDev}.LogShortfall(at)
			return v
		}
		_, d := l.LogShortfall(at)
		h := 1e-4 * l.StdDev / (1 + math.Abs(z))
		mean := slope(func(x float64) float64 { return value(x, l.StdDev) }, l.Mean, h)
		stdDev := slope(func(x float64) float64 { return value(l.Mean, x) }, l.StdDev, h)
		near(t, l, at, "derivative in Mean", d.Mean, mean, 2e-5/math.Min(1, l.StdDev))
		near(t, l, at, "derivative in StdDev", d.StdDev, stdDev, 2e-5/math.Min(1, l.StdDev))
	}
}

// A shortfall that is nearly impossible is still a finite number, and decreases
// with the mean; one that is impossible is not.
func TestLogShortfallFarTail(t *testing.T) {
	for _, tc := range []struct {
		distribution Distribution
		t            float64
	}{
		{Distribution{Gaussian, 1e4, 1e-3}, 0},
		{Distribution{Gaussian, 1, 1e-100}, 0},
		{Distribution{LogNormal, 200, 0.01}, 1e-300},
		{Distribution{NegatedLogNormal, -200, 0.01}, -1e300},
		{Distribution{LogitNormal, 50, 0.01}, 1e-300},
		{Distribution{LogitNormal, 0, 300}, 1e-300},
		{Distribution{LogitNormal, 5, 1e-100}, 0.5},
	} {
		value, d := tc.distribution.LogShortfall(tc.t)
		worse := d.Mean < 0
		if tc.distribution.Family == NegatedLogNormal {
			worse = d.Mean > 0
		}
		if math.IsInf(value, 0) || math.IsNaN(value) || !worse || math.IsNaN(d.StdDev) {
			t.Errorf("%v at %g: %g, %v", tc.distribution, tc.t, value, d)
		}
	}
	for _, tc := range []struct {
		distribution Distribution
		t            float64
	}{
		{Distribution{Gaussian, 1, 0}, 1},
		{Distribution{Gaussian, math.Inf(1), 0}, 1},
		{Distribution{Gaussian, 1, 1}, math.Inf(-1)},
		{Distribution{LogNormal, 1, 1}, 0},
		{Distribution{LogitNormal, 1, 1}, -1},
		{Distribution{LogitNormal, 0, 0}, 0.5},
	} {
		if value, d := tc.distribution.LogShortfall(tc.t); !math.IsInf(value, -1) || d != (Partial{}) {
			t.Errorf("%v at %g: %g, %v, want -Inf and no derivative", tc.distribution, tc.t, value, d)
		}
	}
}

// Known values: ln(t - x), and the derivative in the latent value.
func TestLogShortfallKnown(t *testing.T) {
	for _, tc := range []struct {
		distribution Distribution
		t            float64
		gap, slope   float64
	}{
		{Distribution{Gaussian, 1, 0}, 3, 2, 1},
		{Distribution{LogNormal, math.Log(2), 0}, 3, 1, 2},
		{Distribution{NegatedLogNormal, math.Log(2), 0}, -1, 1, -2},
		{Distribution{LogitNormal, 0, 0}, 0.75, 0.25, 0.25},
	} {
		value, d := tc.distribution.LogShortfall(tc.t)
		near(t, tc.distribution, tc.t, "LogShortfall", value, math.Log(tc.gap), 1e-14)
		near(t, tc.distribution, tc.t, "derivative", d.Mean, -tc.slope/tc.gap, 1e-14)
	}
}
