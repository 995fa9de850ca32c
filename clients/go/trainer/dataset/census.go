package dataset

import "io"

// censusColumns are the columns of the raw files of Adult. Their features are the 123 of the
// encoding that Platt made for "Fast Training of Support Vector Machines Using Sequential
// Minimal Optimization" (1998) and LIBSVM distributes. The bounds of age, fnlwgt,
// education-num and hours-per-week are about the quintiles of adult.data.
var censusColumns = []column{
	interval("age", 25, 32, 40, 49),
	category("workclass",
		"Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
		"Without-pay", "Never-worked"),
	interval("fnlwgt", 106637, 158656, 196337, 259865),
	category("education",
		"Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc",
		"9th", "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th",
		"Preschool"),
	interval("education-num", 8, 9, 10, 12),
	category("marital-status",
		"Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
		"Married-spouse-absent", "Married-AF-spouse"),
	category("occupation",
		"Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
		"Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
		"Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
		"Armed-Forces"),
	category("relationship",
		"Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
	category("race",
		"White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
	category("sex", "Female", "Male"),
	interval("capital-gain", 0),
	interval("capital-loss", 0),
	interval("hours-per-week", 34, 39, 40, 47),
	category("native-country",
		"United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
		"Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba",
		"Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico",
		"Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan",
		"Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
		"Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands"),
	classes("income", "neither >50K nor <=50K", map[string]float32{">50K": 1, ">50K.": 1, "<=50K": -1, "<=50K.": -1}),
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
	return readColumns(r, file, layout{columns: censusColumns, trim: true, comment: '|', missing: "?"})
}
