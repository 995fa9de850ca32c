package table

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// The parts of a division.
const (
	toTrain = iota
	toValidation
	toTest
	partCount
)

// Streams of the random numbers of a seed.
const (
	streamTest = 0x7ab1e_0002 + iota
	streamValidation
)

// divide divides the examples, of which those from testFrom on come from the test file, if the schema names
// one. The part of a row is a function of the schema, the seed, the row's time if that divides, and its position or,
// with a group, its id: never of another row. Rows that are appended to the file move none of the rows before them.
func (e *encoder) divide(seed uint64, validation bool, testFrom int) (*dataset.Parts, error) {
	split := &e.schema.Split
	to := make([]int, e.data.Rows)
	name, free := "rows", e.data.Rows // rows that are divided at random
	testShare := split.test()
	switch {
	case split.TestFile != "":
		name, testShare, free = "file", 0, testFrom
		for i := testFrom; i < len(to); i++ {
			to[i] = toTest
		}
	case split.Time != nil:
		name, testShare = "time", 0
		for i, late := range e.late {
			if late {
				to[i] = toTest
			}
		}
	case e.groups != nil:
		name = "group"
	}
	heldOut := 0.0
	if validation {
		heldOut = split.validation()
	}
	e.assign(to[:free], seed, testShare, heldOut)
	var rows [partCount][]int
	for i, part := range to {
		rows[part] = append(rows[part], i)
	}
	if len(rows[toTrain]) == 0 || len(rows[toTest]) == 0 || validation && len(rows[toValidation]) == 0 {
		return nil, fmt.Errorf("split: leaves %d training, %d validation and %d test examples, must leave some of each",
			len(rows[toTrain]), len(rows[toValidation]), len(rows[toTest]))
	}
	base := strings.TrimSuffix(e.data.Name, ".gz")
	parts := &dataset.Parts{
		Train: e.data.Select(base+"-train", rows[toTrain]),
		Test:  e.data.Select(base+"-test", rows[toTest]),
		Split: dataset.Split{Dataset: e.data.Name, Name: name, Seed: seed, Train: len(rows[toTrain]), Test: len(rows[toTest])},
	}
	if validation {
		parts.Validation = e.data.Select(base+"-validation", rows[toValidation])
		parts.Split.Validation, parts.Split.HoldOutSeed = parts.Validation.Rows, seed
	}
	e.judge(parts, to)
	return parts, nil
}

// assign divides rows at random that are to train so far. The shares are expectations: exact numbers would make the
// part of a row depend on how many others there are.
func (e *encoder) assign(to []int, seed uint64, test, validation float64) {
	for i, part := range to {
		key := uint64(i)
		if e.groups != nil {
			key = e.groups[i]
		}
		switch {
		case part != toTrain:
		case fraction(key, seed, streamTest) < test:
			to[i] = toTest
		case fraction(key, seed, streamValidation) < validation/(1-test):
			to[i] = toValidation
		}
	}
}

// fraction returns a number in [0, 1) that is a function of a key and a seed.
func fraction(key, seed, stream uint64) float64 {
	var b [24]byte
	for i, x := range []uint64{key, seed, stream} {
		binary.LittleEndian.PutUint64(b[8*i:], x)
	}
	sum := sha256.Sum256(b[:])
	return float64(binary.LittleEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// judge adds what parts show.
func (e *encoder) judge(parts *dataset.Parts, to []int) {
	classes := make(map[float32]int)
	for _, label := range parts.Train.Labels {
		classes[label]++
	}
	switch {
	case len(classes) == 1 && e.data.Numeric():
		e.found.addCount(true, e.schema.Label.Column, "all training examples have one label", 0)
	case len(classes) == 1:
		e.found.addCount(true, e.schema.Label.Column, "the training examples have only one class", 0)
	case len(classes) < e.data.Classes:
		e.found.addCount(false, e.schema.Label.Column,
			fmt.Sprintf("the training examples have only %d of the %d classes", len(classes), e.data.Classes), 0)
	}
	for i, d := range []*dataset.Dataset{parts.Validation, parts.Test} {
		if d == nil || d.Groups == nil {
			continue
		}
		where := []string{"validation", "test"}[i]
		small := d.Rows
		for _, rows := range d.Compared() {
			small -= len(rows)
		}
		if small > 0 {
			e.found.addCount(false, e.schema.Fairness.Column, fmt.Sprintf("%s examples are in no group or one of fewer than %d, which error_gap leaves out",
				where, dataset.LeastGroup), small)
		}
		if len(d.Compared()) < 2 {
			e.found.addCount(false, e.schema.Fairness.Column, fmt.Sprintf("fewer than two groups have %d %s examples: there is no error_gap of these",
				dataset.LeastGroup, where), 0)
		}
	}
	if e.groups == nil {
		return
	}
	part, trained, shared, repeated := make(map[uint64]int), make(map[uint64]int), 0, 0
	most := 0 // training rows of an id
	for i, group := range e.groups {
		if to[i] == toTrain {
			trained[group]++
			most = max(most, trained[group])
		}
		first, ok := part[group]
		switch {
		case !ok:
			part[group] = to[i]
		case first != to[i]:
			shared++
		default:
			repeated++
		}
	}
	if shared > 0 {
		e.found.addCount(false, e.schema.Group, "rows have an id that also stands in another part", shared)
	}
	if repeated > 0 {
		e.found.addCount(false, e.schema.Group, fmt.Sprintf("rows repeat an id: epsilon is for one row, and an id has up to %d training rows", most), repeated)
	}
}
