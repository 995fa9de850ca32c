package stopping

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

type Poisson struct{ Rate float64 }

func (p Poisson) Draw(src *noise.Source) (int64, error) {
	k, product := int64(-1), 1.0
	for product > math.Exp(-p.Rate) {
		k++
		product *= src.Float64()
	}
	return k, nil
}

type TNB struct{ Eta, Gamma float64 }

func ByMean(eta, mean float64) (TNB, error) {
	g, err := privacy.SelectionGamma(eta, mean)
	return TNB{eta, g}, err
}

func (l TNB) Draw(src *noise.Source) (int64, error) {
	u := src.Float64()
	p := (1 - l.Gamma) / math.Log(1/l.Gamma)
	if l.Eta != 0 {
		p = (1 - l.Gamma) * l.Eta / (math.Pow(l.Gamma, -l.Eta) - 1)
	}
	k := int64(1)
	for u > p && k < 1e7 {
		u -= p
		p *= (1 - l.Gamma) * (float64(k) + l.Eta) / float64(k+1)
		k++
	}
	return k, nil
}
