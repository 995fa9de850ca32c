package dataset

import (
	"fmt"
	"io"
	"slices"
)

// CovertypeDim is the number of features of Covertype.
const CovertypeDim = 54

// covertypeColumns are the columns of covtype.data. The limits are public bounds, in round numbers, of
// measurements of a cell of land, and no statistics of the rows.
var covertypeColumns = slices.Concat(
	[]column{
		number("measurement", 5000), // elevation in metres: no mountain of the region is as high
		number("measurement", 360),  // aspect and slope in degrees
		number("measurement", 90),
		number("measurement", 10000), // horizontal and vertical distance to water in metres
		{"measurement", 1, func(field string) (int, float32, error) {
			x, err := parseFinite(field, "measurement")
			return 0, max(-1, min(x/1000, 1)), err
		}},
		number("measurement", 10000), // distance to a road in metres
		number("measurement", 255),   // shade at three times of the day
		number("measurement", 255),
		number("measurement", 255),
		number("measurement", 10000), // distance to places where fires began in metres
	},
	slices.Repeat([]column{{"indicator", 1, func(field string) (int, float32, error) {
		x, err := parseFinite(field, "indicator")
		if err == nil && x != 0 && x != 1 {
			err = fmt.Errorf("indicator %s is neither 0 nor 1", field)
		}
		return 0, x, err
	}}}, 44),
	[]column{classes("kind", "not a number from 1 to 7", map[string]float32{"1": -1, "2": 1, "3": -1, "4": -1, "5": -1, "6": -1, "7": -1})},
)

// LoadCovertype reads Covertype (Blackard, 1998), which Kusner et al. (2015) call Forest, in the
// format of UCI's covtype.data: ten measurements, 4 columns for the wilderness area and 40 for
// the soil, each 0 or 1, and the kind of wood from 1 to 7, whole numbers separated by commas.
// The label is 1 for lodgepole pine (kind 2, about half of the rows) and −1 for any other.
// Measurements are divided by round bounds of the measured quantities and cut off, so that they
// are in [−1, 1]; only the vertical distance can be negative. The dataset is sparse and named
// after the file, which may be compressed with gzip.
//
// A malformed file gives a *SyntaxError.
func LoadCovertype(path string) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return readCovertype(r, path) })
}

func readCovertype(r io.Reader, file string) (*Dataset, error) {
	return readColumns(r, file, layout{columns: covertypeColumns})
}
