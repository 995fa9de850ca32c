package privacy

import (
	"errors"
	"math"
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
