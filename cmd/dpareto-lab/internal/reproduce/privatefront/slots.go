package privatefront

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/slots"
)

// The slots of the experiment: runs of slotEpochs with lots of slotLot, a third each with the least noise
// that all of them can afford, twice and four times as much, for a front over a range of ε.
const (
	slotEpochs  = 10
	slotLot     = 256
	slotRecords = 32561 // as the bundled study says
	leastNoise  = 2.0   // of the bundled study, and the most
	mostNoise   = 16.0
)

// slotScales are the noise multipliers over the least one.
var slotScales = []float64{1, 2, 4}

// declareSlots returns slots for a number of trials that cost at most epsilon together.
func declareSlots(trials int64, epsilon, delta float64) ([]*dparetov1.Slot, error) {
	price := func(noise float64) (float64, error) {
		var kinds []slots.Slot
		steps, err := privacy.Steps(slotRecords, slotLot, slotEpochs)
		if err != nil {
			return 0, err
		}
		for _, s := range declared(trials, noise) {
			m := privacy.FixedSizeGaussian{DatasetSize: slotRecords, BatchSize: slotLot, NoiseMultiplier: s.GetParameters()["noise_multiplier"].GetDoubleValue()}
			kinds = append(kinds, slots.Slot{Mechanism: m, Steps: steps, Count: s.GetCount()})
		}
		all, err := slots.NewSlots(kinds, delta)
		if err != nil {
			return 0, err
		}
		return all.Price().Epsilon, nil
	}
	low, high := leastNoise, mostNoise
	for range 20 {
		mid := math.Sqrt(low * high)
		p, err := price(mid)
		switch {
		case err != nil:
			return nil, err
		case p <= epsilon:
			high = mid
		default:
			low = mid
		}
	}
	p, err := price(high)
	if err == nil && !(p <= epsilon) {
		err = fmt.Errorf("--train-epsilon %g does not pay for %d slots, which cost %g at least", epsilon, trials, p)
	}
	return declared(trials, high), err
}

// declared returns the slots with a least noise multiplier.
func declared(trials int64, noise float64) []*dparetov1.Slot {
	var slots []*dparetov1.Slot
	for i, scale := range slotScales {
		count := (trials + int64(i)) / int64(len(slotScales)) // rounded so that the sum is right
		if count == 0 {
			continue
		}
		slots = append(slots, &dparetov1.Slot{Count: count, Parameters: map[string]*dparetov1.Value{
			"epochs":           {Kind: &dparetov1.Value_IntValue{IntValue: slotEpochs}},
			"lot_size":         {Kind: &dparetov1.Value_IntValue{IntValue: slotLot}},
			"noise_multiplier": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: math.Min(mostNoise, scale*noise)}},
		}})
	}
	return slots
}
