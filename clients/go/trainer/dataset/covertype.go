package dataset

import "io"

// CovertypeDim is the number of features of Covertype.
const CovertypeDim = 54

// covertypeScales are public bounds of the ten measurements of a cell of land, in round numbers
// of what they measure: elevation in metres (no mountain of the region has 5000), aspect and
// slope in degrees, horizontal and vertical distance to water and the horizontal one to a road
// in metres, three indices of shade, and the distance to places where fires began. They are no
// statistics of the rows; values beyond them are cut off.
var covertypeScales = [10]float32{5000, 360, 90, 10000, 1000, 10000, 255, 255, 255, 10000}

// LoadCovertype reads Covertype (Blackard, 1998), which Kusner et al. (2015) call Forest, in the
// format of UCI's covtype.data: ten measurements, 4 columns for the wilderness area and 40 for
// the soil, each 0 or 1, and the kind of wood from 1 to 7, whole numbers separated by commas.
// The label is 1 for lodgepole pine (kind 2, about half of the rows) and −1 for any other.
// Measurements are divided by round bounds of what they measure and cut off, so that they
// are in [−1, 1]; only the vertical distance can be negative. The dataset is sparse and named
// after the file, which may be compressed with gzip.
//
// A malformed file gives a *SyntaxError.
func LoadCovertype(path string) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return readCovertype(r, path) })
}

func readCovertype(r io.Reader, file string) (*Dataset, error) {
	records, err := newRecords(r, file, CovertypeDim+1)
	if err != nil {
		return nil, err
	}
	b := newBuilder(0, 0, false)
	var indices []int32
	var values []float32
	for records.next() {
		indices, values = indices[:0], values[:0]
		for i := range CovertypeDim {
			v, err := records.number(i, "measurement")
			if err != nil {
				return nil, err
			}
			const vertical = 4
			switch {
			case i >= len(covertypeScales):
				if v != 0 && v != 1 {
					return nil, records.fail(i, "indicator %v is neither 0 nor 1", v)
				}
			case v < 0 && i != vertical:
				return nil, records.fail(i, "measurement %v is negative", v)
			default:
				v = max(-1, min(v/covertypeScales[i], 1))
			}
			if v != 0 {
				indices, values = append(indices, int32(i)), append(values, v)
			}
		}
		label := float32(-1)
		switch kind := records.fields[CovertypeDim]; kind {
		case "2":
			label = 1
		case "1", "3", "4", "5", "6", "7":
		default:
			return nil, records.fail(CovertypeDim, "kind %q is not a number from 1 to 7", kind)
		}
		b.add(label, indices, values)
	}
	if records.err != nil {
		return nil, records.err
	}
	return b.dataset(file, CovertypeDim), nil
}
