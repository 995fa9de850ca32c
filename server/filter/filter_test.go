package filter

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// thing is a resource with a field of every kind.
type thing struct {
	name   string
	size   float64
	at     time.Time
	state  dparetov1.TrialState
	labels map[string]string
	sized  bool
}

func fields(path []string) (Field[thing], error) {
	switch name := strings.Join(path, "."); {
	case name == "name":
		return Field[thing]{Kind: Text, Get: func(t thing) Value { return TextValue(t.name) }}, nil
	case name == "size":
		return Field[thing]{Kind: Number, Get: func(t thing) Value {
			if !t.sized {
				return Value{}
			}
			return NumberValue(t.size)
		}}, nil
	case name == "at":
		return Field[thing]{Kind: Time, Get: func(t thing) Value { return TimeValue(t.at) }}, nil
	case name == "state":
		return Field[thing]{Kind: Enum, Enum: dparetov1.TrialState(0).Descriptor(), Get: func(t thing) Value { return EnumValue(t.state) }}, nil
	case name == "labels":
		return Field[thing]{Kind: Map}, nil
	case path[0] == "labels":
		key := strings.Join(path[1:], ".")
		return Field[thing]{Kind: Text, Get: func(t thing) Value { return TextValue(t.labels[key]) }}, nil
	default:
		return Field[thing]{}, fmt.Errorf("%s is not a field", name)
	}
}

var example = thing{
	name: "Alice in chains", size: -1.5, sized: true, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	state: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, labels: map[string]string{"team": "a b", "example.org/x.y": "1", "od d": "2"},
}

// The rules are those of AIP-160; every filter is given with what it says of the example.
func TestFilter(t *testing.T) {
	for source, want := range map[string]bool{
		"": true, " \t\n": true,

		`name = "Alice in chains"`: true, `name="Alice"`: false, `name = 'Alice in chains'`: true,
		`name = "Alice*"`: true, `name = Alice*`: true, `name = *chains`: true, `name = "*in*"`: true, `name = *out*`: false, `name = Al*ce`: false,
		`name != Alice*`: false, `name != Bob`: true, `name < B`: true, `name >= B`: false, `name > A`: true, `name <= A`: false,
		`name : "in c"`: true, `name:bob`: false, `name:*`: true, `name:"*"`: false,

		"size = -1.5": true, "size=-15e-1": true, "size != -1.5": false, "size < 0": true, "size > 0": false,
		"size <= -1.5": true, "size >= -1.5": true, "size:-1.5": true, "size:*": true, "size:1": false,

		`at = "2026-01-02T03:04:05Z"`: true, `at = "2026-01-02T04:04:05+01:00"`: true, `at > "2026-01-02T03:04:05Z"`: false,
		`at > "2026-01-02T03:04:04.9Z"`: true, `at != "2026-01-02T03:04:05Z"`: false, `at <= "2026-01-02T03:04:05Z"`: true,

		"state = SUCCEEDED": true, "state = TRIAL_STATE_SUCCEEDED": true, "state = succeeded": true, "state:SUCCEEDED": true,
		"state != SUCCEEDED": false, "state = FAILED": false, "state != FAILED": true, "state:*": true,

		"labels:team": true, "labels:town": false, `labels.team = "a b"`: true, "labels.team:*": true, "labels.town:*": false,
		"labels.example.org/x.y = 1": true, `labels."od d" = 2`: true, `labels:"od d"`: true, `labels."od d":2`: true,

		// What is not set is not compared.
		"labels.town = x": false, "labels.town != x": false, "NOT labels.town = x": true, "-labels.town = x": true,

		// A sequence is a conjunction; OR binds tighter.
		"size<0 name:in": true, "size<0 name:out": false, "size<0 AND name:in": true,
		"size>0 AND name:in OR name:in": false, "size>0 OR size<0 AND name:in": true, "size<0 AND size>0 OR size<0": true,
		"(size>0 AND name:in) OR name:in": true, "size>0 OR (size<0 AND name:out)": false,
		"NOT size>0": true, "-size>0": true, "NOT (size>0 OR name:out)": true, "-(size<0)": false, "size<0 -size>0": true,
		"NOT size>0 OR size>0": true, "((((size<0))))": true, `name = "Alice \"in\" chains"`: false, `name:"\i\n"`: true,
	} {
		filter, err := Parse(source, fields)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := filter(example); got != want {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
	}
	nothing, err := Parse("size = 0 OR size != 0 OR name:* OR state:* OR labels:team", fields)
	if err != nil || nothing(thing{}) {
		t.Errorf("what is not set was compared: %v", err)
	}
}

func TestFilterErrors(t *testing.T) {
	for source, want := range map[string]string{
		"size":                         "at 4: unexpected end, want a comparison of size",
		"size <":                       "at 6: unexpected end, want a value",
		"size < )":                     `at 7: unexpected ")", want a value`,
		"size < x":                     `at 0: size is a number, but "x" is not`,
		"size < NaN":                   `size is a number, but "NaN" is not`,
		"size < 1e999":                 "is a number",
		"size < 1 weight < 2":          "at 9: weight is not a field",
		"at > 2026":                    `at is a time in quotes, such as "2026-01-02T15:04:05Z", but "2026" is not`,
		"at > 2026-01-02T03:04:05Z":    `at is a time in quotes, such as "2026-01-02T15:04:05Z", but "2026-01-02T03" is not`,
		"state = DONE":                 `state is one of QUEUED, ACTIVE, STOPPING, SUCCEEDED, INFEASIBLE, FAILED, not "DONE"`,
		"state = UNSPECIFIED":          "state is one of",
		"state > ACTIVE":               "state has no order",
		"labels = x":                   "labels is a map",
		"labels:*":                     "labels is a map",
		"size < 1 OR":                  "unexpected end, want a field",
		"AND size < 1":                 "want a comparison of AND",
		"size < 1 AND (AND size < 1":   "want a comparison of AND",
		"(size < 1":                    "unexpected end, want )",
		"size < 1)":                    `unexpected ")"`,
		"()":                           `unexpected ")", want a field`,
		`name = "x`:                    "at 7: missing closing quote",
		`name = "x\`:                   "missing closing quote",
		`"name" = x`:                   "want a field",
		"!size < 1":                    "did you mean != or NOT?",
		"size ! 1":                     "did you mean != or NOT?",
		"size..x = 1":                  "has an empty name",
		"labels. = 1":                  "has an empty name",
		"size(1)":                      "functions are not supported",
		"size < 1 name = (a OR b)":     "want a value",
		strings.Repeat("x", 2001):      "at most 2000 bytes",
		strings.Repeat("(", 21):        "parentheses nested more than 20 deep",
		strings.Repeat("size<1 ", 101): "more than 100 comparisons",
	} {
		if _, err := Parse(source, fields); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: error %v, want %q", source, err, want)
		}
	}
	for _, source := range []string{strings.Repeat("(", 20) + "size<1" + strings.Repeat(")", 20), strings.Repeat("size<1 ", 100), "(size<1)" + strings.Repeat("(size<1)", 50)} {
		if _, err := Parse(source, fields); err != nil {
			t.Errorf("%.50s: %v", source, err)
		}
	}
}

func TestOrderErrors(t *testing.T) {
	for source, want := range map[string]string{
		"size down":                     `"size down" must be a field, optionally followed by desc or asc`,
		"size,":                         `"" must be a field`,
		"size desc asc":                 "must be a field",
		"weight":                        "weight is not a field",
		"labels":                        "has no order",
		"labels.":                       "has an empty name",
		strings.Repeat("x", 2001):       "at most 2000 bytes",
		"size,size,size,size,size,name": "at most 5 fields",
	} {
		if _, err := ParseOrder(source, fields); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: error %v, want %q", source, err, want)
		}
	}
	if order, err := ParseOrder(" ", fields); len(order) != 0 || err != nil {
		t.Errorf("no order: %v, %v", order, err)
	}
}

// Keys sort as the values do, compared one after the other.
func TestOrderKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []float64{math.Inf(-1), -math.MaxFloat64, -2, -1, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0, 1e-300, 1, 2, math.Inf(1)}
	names := []string{"", "\x00", "\x00\x00", "\x00\xff", "\x00\x01", "a", "a\x00", "a\x00\x01", "a\x01", "a\xff", "aa", "b", "ä"}
	things := make([]thing, 300)
	for i := range things {
		things[i] = thing{
			name: names[random.IntN(len(names))], size: sizes[random.IntN(len(sizes))], sized: random.IntN(4) > 0,
			at: time.Unix(random.Int64N(5)-2, 0), state: dparetov1.TrialState(random.IntN(7)),
		}
	}
	absentLast := func(aSet, bSet bool, sign int) int {
		switch {
		case aSet && bSet:
			return sign
		case aSet:
			return -1
		case bSet:
			return 1
		default:
			return 0
		}
	}
	compare := map[string]func(a, b thing, sign int) int{
		"name": func(a, b thing, sign int) int {
			return absentLast(a.name != "", b.name != "", sign*cmp.Compare(a.name, b.name))
		},
		"size": func(a, b thing, sign int) int { return absentLast(a.sized, b.sized, sign*cmp.Compare(a.size, b.size)) },
		"at":   func(a, b thing, sign int) int { return sign * a.at.Compare(b.at) },
		"state": func(a, b thing, sign int) int {
			return absentLast(a.state != 0, b.state != 0, sign*cmp.Compare(a.state, b.state))
		},
	}
	all := []string{"name", "size", "at", "state"}
	for range 20 {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		source, signs := "", make([]int, len(all))
		for i, name := range all {
			signs[i] = 1
			source += "," + name
			if random.IntN(2) == 0 {
				signs[i] = -1
				source += " desc"
			}
		}
		order, err := ParseOrder(source[1:], fields)
		require.NoError(t, err)
		for range 2000 {
			a, b := things[random.IntN(len(things))], things[random.IntN(len(things))]
			want := 0
			for i, name := range all {
				if want == 0 {
					want = compare[name](a, b, signs[i])
				}
			}
			if got := strings.Compare(order.Key(a), order.Key(b)); got != want {
				t.Fatalf("%s: %v and %v: %d, want %d", source, a, b, got, want)
			}
		}
	}
	long := strings.Repeat("x", maxKeyText)
	order, err := ParseOrder("name", fields)
	require.NoError(t, err)
	if a, b := order.Key(thing{name: long + "a"}), order.Key(thing{name: long + "b"}); a != b || len(a) > maxKeyText+10 {
		t.Errorf("keys of %d and %d bytes", len(a), len(b))
	}
	if !slices.IsSorted([]string{order.Key(thing{name: "a"}), order.Key(thing{name: "b"}), order.Key(thing{})}) {
		t.Error("what is not set does not come last")
	}
}

// No filter and no order fails other than by an error.
func FuzzFilter(f *testing.F) {
	f.Add(`state = SUCCEEDED AND (size < 1 OR labels."k":*) -name:"x"`, "size desc, name")
	f.Add("-(((", "labels.x")
	f.Fuzz(func(_ *testing.T, source, by string) {
		if filter, err := Parse(source, fields); err == nil {
			filter(example)
			filter(thing{})
		}
		if order, err := ParseOrder(by, fields); err == nil {
			order.Key(example)
		}
	})
}
