package experiment

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// fairRows is the least number of examples on which the gap is measured.
const fairRows = 5000

// hasGap reports whether the gap is measured on a part.
func hasGap(parts *dataset.Parts, part *dataset.Dataset) bool {
	name := parts.Split.Dataset
	return (name == dataset.NameAdult || name == dataset.NameAdultRaw) && part.Rows >= fairRows
}

// appendGap appends the declaration of the gap on a part, if it is measured.
func appendGap(metrics []trainer.MetricDeclaration, name string, parts *dataset.Parts, part *dataset.Dataset) []trainer.MetricDeclaration {
	if !hasGap(parts, part) {
		return metrics
	}
	where := map[string]string{MetricGap: "", MetricTestGap: ", on the test examples"}[name]
	return append(metrics, trainer.MetricDeclaration{
		Name: name, Unit: ratio, Usage: "how much likelier high incomes of one sex are found than of the other" + where,
	})
}

// positives returns the positive examples of women and of men in a part, or nil if the gap is
// not measured on it: an outline has neither.
func positives[E any](parts *dataset.Parts, part *dataset.Dataset, prepare func(*dataset.Dataset) (E, error)) ([]E, error) {
	if !hasGap(parts, part) {
		return nil, nil
	}
	var groups []E
	for _, feature := range []int32{dataset.AdultFemale, dataset.AdultMale} {
		var rows []int
		for i, label := range part.Labels {
			if indices, _ := part.Row(i); label > 0 && slices.Contains(indices, feature) {
				rows = append(rows, i)
			}
		}
		if len(rows) == 0 {
			return nil, nil
		}
		group, err := prepare(part.Select(part.Name, rows))
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// gap returns the difference of the rates at which a model finds the positive examples of two
// groups. The rate is 1 minus the error on the group.
func gap[E any](positives []E, evaluate func(examples E) (errorRate, loss float64)) float64 {
	first, _ := evaluate(positives[0])
	second, _ := evaluate(positives[1])
	return math.Abs(first - second)
}
