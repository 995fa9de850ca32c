package experiment

import (
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// fairRows is the least number of examples of Adult on which the gap is measured.
const fairRows = 5000

var gapUsages = map[string]string{
	MetricGap:      "how much likelier high incomes of one sex are found than of the other",
	MetricErrorGap: "largest difference of the errors of two groups of the schema's fairness column",
}

// compared returns the rows of the groups whose error rates a part compares, and the name of the difference, empty if
// there is none: of Adult the positive examples of women and of men, of a user's own data the groups of the schema.
func compared(parts *dataset.Parts, part *dataset.Dataset) (name string, groups [][]int) {
	if groups = part.Compared(); len(groups) >= 2 {
		return MetricErrorGap, groups
	}
	if of := parts.Split.Dataset; of != dataset.NameAdult && of != dataset.NameAdultRaw || part.Rows < fairRows {
		return "", nil
	}
	for _, feature := range []int32{dataset.AdultFemale, dataset.AdultMale} {
		var rows []int
		for i, label := range part.Labels {
			if indices, _ := part.Row(i); label > 0 && slices.Contains(indices, feature) {
				rows = append(rows, i)
			}
		}
		groups = append(groups, rows)
	}
	return MetricGap, groups
}

// appendGap appends the declaration of the gap on a part, if it is measured.
func appendGap(metrics []trainer.MetricDeclaration, prefix string, parts *dataset.Parts, part *dataset.Dataset) []trainer.MetricDeclaration {
	name, _ := compared(parts, part)
	if name == "" {
		return metrics
	}
	where := ""
	if prefix != "" {
		where = ", on the test examples"
	}
	return append(metrics, trainer.MetricDeclaration{Name: prefix + name, Unit: ratio, Usage: gapUsages[name] + where})
}

// groupsOf returns the groups of a part whose error rates are compared, none if one is empty: an outline has neither
// women nor men.
func groupsOf[E any](part *dataset.Dataset, rows [][]int, prepare func(*dataset.Dataset) (E, error)) ([]E, error) {
	var groups []E
	for _, rows := range rows {
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

// gap returns the largest difference of the error rates of a model on groups.
func gap[E any](groups []E, evaluate func(examples E) (errorRate, loss float64)) float64 {
	var rates []float64
	for _, group := range groups {
		rate, _ := evaluate(group)
		rates = append(rates, rate)
	}
	return slices.Max(rates) - slices.Min(rates)
}
