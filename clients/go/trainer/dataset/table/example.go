package table

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Examples returns the names of the tables that WriteExample makes up.
func Examples() []string { return []string{"loans", "rents", "crops"} }

// WriteExample writes a CSV file of made-up rows, for tutorials and tests. Equal arguments give equal files.
//
// loans has two classes, mixed columns and missing values. Income has the distribution e^(10.3 + 0.5·N) with N
// standard normal, debt is 0 to 1.2 times it. A loan is repaid with probability 1/(1 + e^(−s)), where s =
// 2 + 3·ln(income/30000) − 5·debt/income + (age − 45)/10 + w, and w is 1.5, 0, −1, −3 for the kinds of
// work. One income in twelve and one kind of work in thirty are missing.
//
// rents is for regression. A rent is 350 + 9.5·area + 90·rooms + (0, 180, 420, −60)(district) − 1.5·age − 6·distance,
// times e^(0.1·N), and at least 100.
//
// crops has seven classes. Soil and weather are normal around a centre of the crop, which has distance 1 to 4
// from others in units of the standard deviations.
func WriteExample(w io.Writer, name string, rows int, seed uint64) error {
	made := map[string]example{
		"loans": {"customer,age,income,debt,work,region,repaid", (*maker).loan},
		"rents": {"flat,area,rooms,district,age,distance,rent", (*maker).rent},
		"crops": {"nitrogen,phosphorus,potassium,temperature,humidity,acidity,rainfall,crop", (*maker).crop},
	}
	e, ok := made[name]
	if !ok {
		return fmt.Errorf("example %q is unknown, must be one of %s", name, strings.Join(Examples(), ", "))
	}
	if rows < 1 {
		return fmt.Errorf("rows: must be at least 1, are %d", rows)
	}
	m := &maker{rand.New(rand.NewPCG(seed, uint64(slices.Index(Examples(), name))))}
	b := bufio.NewWriter(w)
	_, _ = fmt.Fprintln(b, e.header) // Flush returns its error
	for i := range rows {
		_, _ = fmt.Fprintln(b, strings.Join(e.row(m, i), ","))
	}
	return b.Flush()
}

type example struct {
	header string
	row    func(m *maker, i int) []string
}

type maker struct{ *rand.Rand }

func (m *maker) loan(i int) []string {
	age := 20 + m.IntN(61)
	income := math.Exp(10.3 + 0.5*m.NormFloat64())
	debt := 1.2 * income * m.Float64()
	kinds, weights := []string{"civil servant", "employee", "self-employed", "none"}, []float64{1.5, 0, -1, -3}
	work := m.IntN(len(kinds))
	score := 2 + 3*math.Log(income/30000) - 5*debt/income + float64(age-45)/10 + weights[work]
	row := []string{
		"c" + strconv.Itoa(i), strconv.Itoa(age), whole(income), whole(debt), kinds[work], []string{"north", "south", "east", "west"}[m.IntN(4)], "no",
	}
	if m.Float64() < 1/(1+math.Exp(-score)) {
		row[6] = "yes"
	}
	if m.IntN(12) == 0 {
		row[2] = ""
	}
	if m.IntN(30) == 0 {
		row[4] = "?"
	}
	return row
}

func (m *maker) rent(i int) []string {
	rooms := 1 + m.IntN(5)
	area := 18*float64(rooms) + 25*m.Float64()
	names, extra := []string{"harbour", "old town", "park", "station"}, []float64{0, 180, 420, -60}
	district := m.IntN(len(names))
	age, distance := m.IntN(101), 15*m.Float64()
	rent := 350 + 9.5*area + 90*float64(rooms) + extra[district] - 1.5*float64(age) - 6*distance
	rent = max(100, rent*math.Exp(0.1*m.NormFloat64()))
	return []string{"f" + strconv.Itoa(i), whole(area), strconv.Itoa(rooms), names[district], strconv.Itoa(age), tenth(distance), whole(rent)}
}

// crops are the centres of the soil and weather of crops, and the standard deviations.
var crops = []struct {
	name   string
	centre [7]float64
}{
	{"barley", [7]float64{70, 40, 45, 14, 55, 6.6, 70}},
	{"beans", [7]float64{30, 65, 40, 20, 60, 6.2, 100}},
	{"beet", [7]float64{100, 55, 110, 16, 65, 7.0, 90}},
	{"maize", [7]float64{110, 60, 60, 23, 60, 6.4, 110}},
	{"oats", [7]float64{75, 45, 60, 12, 70, 5.8, 95}},
	{"rye", [7]float64{60, 35, 50, 10, 60, 5.6, 75}},
	{"wheat", [7]float64{95, 50, 55, 15, 60, 6.8, 80}},
}

var cropDeviations = [7]float64{15, 9, 14, 3, 8, 0.4, 14}

func (m *maker) crop(int) []string {
	c := crops[m.IntN(len(crops))]
	var row []string
	for k, centre := range c.centre {
		row = append(row, tenth(max(0, centre+cropDeviations[k]*m.NormFloat64())))
	}
	return append(row, c.name)
}

func whole(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }

func tenth(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
