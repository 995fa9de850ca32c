package dataset

import "io"

// BreastCancerDim is the number of features of the Wisconsin diagnostic breast cancer data.
const BreastCancerDim = 30

// breastCancerColumns are the columns of wdbc.data. The limits are public upper bounds of the ten measurements of a
// cell nucleus, in round numbers of the units of the file, and no statistics of the rows. Each measurement is given
// as a mean, a standard error and the mean of the three largest values.
var breastCancerColumns = func() []column {
	columns := []column{{name: "ID"}, classes("diagnosis", "neither M nor B", map[string]float32{"M": 1, "B": -1})}
	for range 3 {
		// Radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, symmetry, fractal dimension.
		for _, limit := range []float64{50, 50, 300, 5000, 0.5, 2, 2, 0.5, 1, 0.5} {
			columns = append(columns, number("measurement", limit))
		}
	}
	return columns
}()

// LoadBreastCancer reads wdbc.data as ReadBreastCancer does. The dataset is named after the
// file.
func LoadBreastCancer(path string) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return ReadBreastCancer(r, path) })
}

// ReadBreastCancer reads the Wisconsin diagnostic breast cancer data (Street, Wolberg and
// Mangasarian, "Nuclear Feature Extraction for Breast Tumor Diagnosis", 1993) in the format
// of UCI's wdbc.data: an ID, which is dropped, the diagnosis, M or B, and 30 measurements,
// separated by commas. The label is 1 for malignant and −1 for benign. The features are
// divided by round upper bounds of the measured quantities and cut off at 1, so that they
// are in [0, 1]; the dataset is dense. The input may be compressed with gzip.
//
// Malformed input, which includes negative measurements, gives a *SyntaxError.
func ReadBreastCancer(r io.Reader, file string) (*Dataset, error) {
	return readColumns(r, file, layout{columns: breastCancerColumns, dense: true})
}

// BreastCancerOriginalDim is the number of features of the older Wisconsin breast cancer
// data.
const BreastCancerOriginalDim = 9

// LoadBreastCancerOriginal reads the older Wisconsin breast cancer data (Wolberg and
// Mangasarian, "Multisurface Method of Pattern Separation for Medical Diagnosis Applied to
// Breast Cytology", 1990) in the format of UCI's breast-cancer-wisconsin.data: an ID, which
// is dropped, nine grades from 1 to 10, and the class, 2 for benign and 4 for malignant,
// separated by commas. The label is 1 for malignant and −1 for benign; a grade is divided
// by 10, and 0 where it is "?". The dataset is dense and named after the file. The file may
// be compressed with gzip.
//
// A malformed file gives a *SyntaxError.
func LoadBreastCancerOriginal(path string) (*Dataset, error) {
	return LoadCSV(path, CSVOptions{Skip: 1, Features: BreastCancerOriginalDim, Max: 10, Missing: "?", Labels: []string{"2", "4"}})
}
