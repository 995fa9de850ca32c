package dataset

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// censusAttribute is a column of the raw files of Adult and its group of features. It is
// either a category or a whole number.
type censusAttribute struct {
	name string
	// categories have a feature each.
	categories []string
	// bounds divide the numbers: feature k is 1 for numbers up to bounds[k], the last one
	// for all above. For age, fnlwgt, education-num and hours-per-week they are about the
	// quintiles of adult.data.
	bounds []int64
}

// features returns the number of features.
func (a *censusAttribute) features() int {
	if a.categories != nil {
		return len(a.categories)
	}
	return len(a.bounds) + 1
}

// censusAttributes are the columns of the raw files of Adult in their order. Their
// features together, in this order, are the 123 of the encoding that Platt made for
// "Fast Training of Support Vector Machines Using Sequential Minimal Optimization" (1998)
// and LIBSVM distributes.
var censusAttributes = [...]censusAttribute{
	{name: "age", bounds: []int64{25, 32, 40, 49}},
	{name: "workclass", categories: []string{
		"Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
		"Without-pay", "Never-worked",
	}},
	{name: "fnlwgt", bounds: []int64{106637, 158656, 196337, 259865}},
	{name: "education", categories: []string{
		"Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc",
		"9th", "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th",
		"Preschool",
	}},
	{name: "education-num", bounds: []int64{8, 9, 10, 12}},
	{name: "marital-status", categories: []string{
		"Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
		"Married-spouse-absent", "Married-AF-spouse",
	}},
	{name: "occupation", categories: []string{
		"Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
		"Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
		"Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
		"Armed-Forces",
	}},
	{name: "relationship", categories: []string{
		"Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
	}},
	{name: "race", categories: []string{
		"White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black",
	}},
	{name: "sex", categories: []string{"Female", "Male"}},
	{name: "capital-gain", bounds: []int64{0}},
	{name: "capital-loss", bounds: []int64{0}},
	{name: "hours-per-week", bounds: []int64{34, 39, 40, 47}},
	{name: "native-country", categories: []string{
		"United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
		"Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba",
		"Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico",
		"Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan",
		"Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
		"Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
	}},
}

// LoadCensus reads a raw file of UCI Adult, adult.data or adult.test, as ReadCensus does.
// The dataset is named after the file.
func LoadCensus(path string) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return ReadCensus(r, path) })
}

// ReadCensus reads examples in the format of UCI's adult.data and adult.test (Becker and
// Kohavi 1996): 14 attributes and the income, separated by commas. They are encoded in
// the 123 binary features of LIBSVM's a9a and a9a.t, and are the same rows. An attribute
// that is "?" has no feature; the label is 1 for an income above 50K and −1 otherwise; a
// line that begins with | is a comment. The input may be compressed with gzip.
//
// Malformed input, which includes unknown categories, gives a *SyntaxError.
func ReadCensus(r io.Reader, file string) (*Dataset, error) {
	records, err := newRecords(r, file, len(censusAttributes)+1)
	if err != nil {
		return nil, err
	}
	records.csv.Comment = '|'
	records.csv.TrimLeadingSpace = true
	b := newBuilder(0, 0, false)
	indices := make([]int32, 0, len(censusAttributes))
	for records.next() {
		indices = indices[:0]
		first := 0
		for column := range censusAttributes {
			attribute := &censusAttributes[column]
			text := strings.TrimRight(records.fields[column], " ")
			if text != "?" {
				k, ok := attribute.feature(text)
				if !ok {
					return nil, records.fail(column, "%s %q is unknown", attribute.name, text)
				}
				indices = append(indices, int32(first+k))
			}
			first += attribute.features()
		}
		column := len(censusAttributes)
		label := float32(-1)
		switch income := strings.TrimRight(records.fields[column], " "); income {
		case ">50K", ">50K.":
			label = 1
		case "<=50K", "<=50K.":
		default:
			return nil, records.fail(column, "income %q is neither >50K nor <=50K", income)
		}
		b.add(label, indices, nil)
	}
	if records.err != nil {
		return nil, records.err
	}
	return b.dataset(file, AdultDim), nil
}

// feature returns which of the attribute's features the text stands for.
func (a *censusAttribute) feature(text string) (k int, ok bool) {
	if a.categories != nil {
		k = slices.Index(a.categories, text)
		return k, k >= 0
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, false
	}
	for k < len(a.bounds) && number > a.bounds[k] {
		k++
	}
	return k, true
}
