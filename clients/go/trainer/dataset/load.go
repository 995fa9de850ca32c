package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/internal/fetch"
)

// Names of divisions into training and test examples.
const (
	// SplitPublished is the division that results in the literature are about. Of Adult
	// it trains on a1a.t (30,956 examples) and tests on a1a (1,605), as the code
	// published with Avent et al., "Automatic Discovery of Privacy-Utility Pareto Fronts"
	// (PoPETs 2020) does; the paper's text says 40k and 1.6k. Of Gisette it tests on the
	// challenge's validation set, since the labels of its test set were never published.
	SplitPublished = "published"
	// SplitUntouched of Adult trains on a1a.t, has a1a for validation, and tests on a9a.t
	// (16,281 examples): a search that takes the validation examples for the published test
	// examples is judged on examples that it has not seen.
	SplitUntouched = "untouched"
	// SplitUCI of Adult trains on a9a (32,561 examples) and tests on a9a.t (16,281),
	// which is UCI's own division.
	SplitUCI = "uci"
	// SplitShuffled pools all examples (of Adult, a9a and a9a.t), shuffles them by a
	// seed, trains on the first rows and tests on all the others.
	SplitShuffled = "shuffled"
)

// Division asks for a division of a dataset.
type Division struct {
	// Split is SplitPublished, SplitUntouched, SplitUCI or SplitShuffled. Empty means the first of
	// these that the dataset has.
	Split string
	// TrainRows is the number of training examples of SplitShuffled, at least 1 and less
	// than all. Zero means the dataset's default: 40,000 for Adult, 400 and 500 for the
	// breast cancer data, otherwise the number of the published division. Other splits
	// require zero.
	TrainRows int
	// ValidationRows is the number of training examples that are held out for validation,
	// at random by the seed. Test examples are never held out. SplitUntouched requires zero: it
	// has its own.
	ValidationRows int
	// Seed of SplitShuffled, of the choice of validation examples, and of generated
	// examples. It has no effect otherwise.
	Seed uint64
	// Generated asks for generated examples in the numbers of the split, in place of the
	// dataset's. There are some in the shape of Adult and of MNIST.
	Generated bool
}

// normal checks the division, fills in its defaults and clears what has no effect, so
// that equal divisions compare equal.
func (d Division) normal(e *entry) (Division, error) {
	var known []string
	own := -1
	for i, split := range e.splits {
		if split.name == "" {
			continue
		}
		known = append(known, split.name)
		if d.Split == split.name || d.Split == "" && i == 0 {
			d.Split = split.name
			own = i
		}
	}
	known = append(known, SplitShuffled)
	if d.Split == "" {
		d.Split = SplitShuffled
	}
	var trainRows int
	switch {
	case own >= 0:
		if d.TrainRows != 0 {
			return d, fmt.Errorf("train rows %d given for split %s, whose rows are fixed", d.TrainRows, d.Split)
		}
		trainRows = e.splits[own].train.rows
		if d.ValidationRows != 0 && e.splits[own].validation.rows > 0 {
			return d, fmt.Errorf("validation rows %d given for split %s, which has its own", d.ValidationRows, d.Split)
		}
		if !d.Generated && d.ValidationRows == 0 {
			d.Seed = 0
		}
	case d.Split == SplitShuffled:
		if d.TrainRows == 0 {
			d.TrainRows = e.poolRows
		}
		pool := e.splits[len(e.splits)-1]
		if all := pool.train.rows + pool.test.rows; d.TrainRows < 1 || d.TrainRows >= all {
			return d, fmt.Errorf("train rows %d of split %s are not between 1 and %d", d.TrainRows, d.Split, all-1)
		}
		trainRows = d.TrainRows
	default:
		return d, fmt.Errorf("split %q is unknown, want one of %s", d.Split, strings.Join(known, ", "))
	}
	if d.ValidationRows < 0 || d.ValidationRows >= trainRows {
		return d, fmt.Errorf("validation rows %d are not between 0 and %d, one less than the training rows", d.ValidationRows, trainRows-1)
	}
	if d.Generated && e.generate == nil {
		return d, fmt.Errorf("there are no generated examples of dataset %s", e.info.Name)
	}
	return d, nil
}

// Load returns the parts of a dataset of the catalog, with files from the source.
//
// A file that is in no folder and fails to download gives a *DownloadError, or
// fs.ErrNotExist if it is not downloadable; a malformed file gives a *SyntaxError. A
// wrong number of examples, an unknown name and an impossible division are also errors.
// Generated examples and outlines need no files.
func Load(ctx context.Context, name string, division Division, source Source) (*Parts, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	if division, err = division.normal(e); err != nil {
		return nil, err
	}
	return e.load(ctx, division, source)
}

// load returns the parts of a division that is normal.
func (e *entry) load(ctx context.Context, division Division, source Source) (*Parts, error) {
	own := slices.IndexFunc(e.splits, func(s ownSplit) bool { return s.name == division.Split })
	shuffled := own < 0
	if shuffled {
		own = len(e.splits) - 1
	}
	split := e.splits[own]
	var train, validation, test *Dataset
	if division.Generated {
		tested := split.train.rows + split.test.rows
		pool := e.generate(tested+split.validation.rows, division.Seed)
		trainRows := split.train.rows
		if shuffled {
			trainRows = division.TrainRows
		}
		train = pool.Select(pool.Name+"-train", sequence(0, trainRows))
		test = pool.Select(pool.Name+"-test", sequence(trainRows, tested))
		if tested < pool.Rows {
			validation = pool.Select(pool.Name+"-validation", sequence(tested, pool.Rows))
		}
	} else {
		read, err := e.readParts(ctx, []part{split.train, split.validation, split.test}, source)
		if err != nil {
			return nil, err
		}
		train, validation, test = read[0], read[1], read[2]
		if shuffled {
			pool := train
			if test != nil {
				pool = Concat(e.info.Name, train, test)
			}
			parts, err := Shuffle(pool, division.Seed, division.TrainRows)
			if err != nil {
				return nil, err
			}
			train, test = parts.Train, parts.Test
		}
		prefix := e.info.Name + "-" + division.Split
		train.Name, test.Name = prefix+"-train", prefix+"-test"
		if validation != nil {
			validation.Name = prefix + "-validation"
		}
	}
	record := Split{Dataset: e.info.Name, Name: division.Split}
	if shuffled || division.Generated {
		record.Seed = division.Seed
	}
	parts := newParts(record, train, validation, test)
	if validation != nil {
		return parts, nil
	}
	return parts.HoldOut(division.Seed, division.ValidationRows)
}

// readParts reads parts of one of the dataset's own divisions: nil for one without files.
func (e *entry) readParts(ctx context.Context, parts []part, source Source) ([]*Dataset, error) {
	read := make([]*Dataset, len(parts))
	var wanted []fetch.File
	for i, p := range parts {
		if source.Outline && len(p.files) > 0 {
			read[i] = e.outline(p.rows)
		}
		for _, name := range p.files {
			wanted = append(wanted, e.files[slices.IndexFunc(e.files, func(f fetch.File) bool { return f.Name == name })])
		}
	}
	if source.Outline {
		return read, nil
	}
	paths, err := source.locate(ctx, e, wanted)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if len(p.files) == 0 {
			continue
		}
		if read[i], err = e.readPart(ctx, p, paths[:len(p.files)]); err != nil {
			return nil, err
		}
		paths = paths[len(p.files):]
	}
	return read, nil
}

// outline returns examples without features, of all classes in turn.
func (e *entry) outline(rows int) *Dataset {
	b := newBuilder(rows, 0, false)
	for i := range rows {
		b.add(classLabel(i%e.info.Classes, e.info.Classes), nil, nil)
	}
	return b.dataset(e.info.Name, e.info.Dim)
}

// readPart reads a part and checks its shape.
func (e *entry) readPart(ctx context.Context, p part, paths []string) (*Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := e.read(paths)
	if err != nil {
		return nil, err
	}
	if d.Rows != p.rows {
		return nil, fmt.Errorf("%s: %d examples, want the %d of %s", paths[0], d.Rows, p.rows, p.files[0])
	}
	if d.Dim != e.info.Dim || d.Classes != e.info.Classes {
		return nil, fmt.Errorf("%s: %d features and %d classes, want the %d and %d of dataset %s",
			paths[0], d.Dim, d.Classes, e.info.Dim, e.info.Classes, e.info.Name)
	}
	return d, nil
}

// sequence returns the numbers from first to below end.
func sequence(first, end int) []int {
	numbers := make([]int, end-first)
	for i := range numbers {
		numbers[i] = first + i
	}
	return numbers
}
