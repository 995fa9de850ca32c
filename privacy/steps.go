package privacy

import (
	"errors"
	"math"
	"math/big"
)

// StepsPerEpoch returns the number of batches that count as one epoch:
// datasetSize/batchSize rounded to the nearest integer, halves to even, and at
// least 1. Training and accounting must use the same integer. The errors are
// FieldErrors for "dataset_size" and "batch_size".
func StepsPerEpoch(datasetSize, batchSize int64) (int64, error) {
	if err := checkBatch(datasetSize, batchSize); err != nil {
		return 0, err
	}
	return max(1, int64(math.RoundToEven(float64(datasetSize)/float64(batchSize)))), nil
}

// Steps returns epochs times [StepsPerEpoch], epochs >= 0. The errors are
// FieldErrors for "dataset_size", "batch_size" and "epochs".
func Steps(datasetSize, batchSize, epochs int64) (int64, error) {
	perEpoch, err := StepsPerEpoch(datasetSize, batchSize)
	if err != nil {
		return 0, err
	}
	if epochs < 0 {
		return 0, FieldErrorf("epochs", "must not be negative, is %d", epochs)
	}
	if epochs > math.MaxInt64/perEpoch {
		return 0, FieldErrorf("epochs", "makes more steps than fit in 64 bits, is %d", epochs)
	}
	return epochs * perEpoch, nil
}

// Convention says how the probability of Poisson sampling and the number of steps follow from
// n records, an expected lot of m and a number of epochs. Tools differ where m does not divide
// n.
type Convention int

const (
	// RoundedEpochs draws each record with probability m/n in [StepsPerEpoch] steps an epoch.
	RoundedEpochs Convention = iota + 1
	// OpacusEpochs draws it with probability 1/⌈n/m⌉ in ⌈n/m⌉ steps an epoch, as
	// PrivacyEngine.make_private of Opacus does for a data loader with drop_last=False.
	OpacusEpochs
	// TensorFlowEpochs draws it with probability m/n in ⌈epochs·n/m⌉ steps, for which
	// compute_dp_sgd_privacy of TensorFlow Privacy accounts.
	TensorFlowEpochs
)

// SamplingProbability returns the probability with which a step draws a record. The errors are
// FieldErrors for "dataset_size" and "batch_size". It panics on an unknown convention.
func (c Convention) SamplingProbability(datasetSize, batchSize int64) (float64, error) {
	if err := checkBatch(datasetSize, batchSize); err != nil {
		return 0, err
	}
	switch c {
	case RoundedEpochs, TensorFlowEpochs:
		return float64(batchSize) / float64(datasetSize), nil
	case OpacusEpochs:
		return 1 / float64((datasetSize-1)/batchSize+1), nil
	default:
		panic("privacy: unknown convention")
	}
}

// Steps returns the number of steps of a number of epochs, epochs >= 0. The errors are
// FieldErrors for "dataset_size", "batch_size" and "epochs". It panics on an unknown convention.
func (c Convention) Steps(datasetSize, batchSize, epochs int64) (int64, error) {
	if c == RoundedEpochs {
		return Steps(datasetSize, batchSize, epochs)
	}
	if err := checkBatch(datasetSize, batchSize); err != nil {
		return 0, err
	}
	if epochs < 0 {
		return 0, FieldErrorf("epochs", "must not be negative, is %d", epochs)
	}
	n, m, e := big.NewInt(datasetSize), big.NewInt(batchSize), big.NewInt(epochs)
	var steps *big.Int
	switch c {
	case OpacusEpochs:
		steps = e.Mul(e, ceilQuotient(n, m))
	case TensorFlowEpochs:
		steps = ceilQuotient(e.Mul(e, n), m)
	default:
		panic("privacy: unknown convention")
	}
	if !steps.IsInt64() {
		return 0, FieldErrorf("epochs", "makes more steps than fit in 64 bits, is %d", epochs)
	}
	return steps.Int64(), nil
}

// ceilQuotient returns ⌈a/b⌉ for b > 0.
func ceilQuotient(a, b *big.Int) *big.Int {
	quotient, rest := new(big.Int).DivMod(a, b, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

// checkBatch reports the fields that keep batchSize records from being drawn
// out of datasetSize.
func checkBatch(datasetSize, batchSize int64) error {
	var errs []error
	if datasetSize < 1 {
		errs = append(errs, FieldErrorf("dataset_size", "must be at least 1, is %d", datasetSize))
	}
	switch {
	case batchSize < 1:
		errs = append(errs, FieldErrorf("batch_size", "must be at least 1, is %d", batchSize))
	case datasetSize >= 1 && batchSize > datasetSize:
		errs = append(errs, FieldErrorf("batch_size", "must not exceed the dataset size %d, is %d", datasetSize, batchSize))
	}
	return errors.Join(errs...)
}
