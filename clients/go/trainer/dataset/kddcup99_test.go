package dataset

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

// connection is a line without its label.
const connection = "86400,udp,private,SF,4294967295,0,0,0,0,0,0,0,0,0,2,0,0,0,0,0,0,0,511,1,0.00,0.00,0.00,0.00,1.00,0.25,0.00,300,254,1.00,0.01,0.00,0.00,0.00,0.00,0.00,0.00,"

func TestReadKDDCup99(t *testing.T) {
	got, err := ReadKDDCup99(strings.NewReader(connection+"normal.\n"+connection+"smurf.\n"), "kdd")
	require.NoError(t, err)
	if got.Rows != 2 || got.Dim != 123 || got.Classes != 2 || !cmp.Equal(got.Labels, []float32{-1, 1}) {
		t.Errorf("%d rows, dimension %d, %d classes, labels %v", got.Rows, got.Dim, got.Classes, got.Labels)
	}
	// Columns count from 0, features too: udp is the third protocol, private the 51st of 71
	// services, SF the tenth of 11 states; 3+71+11 features stand for three columns.
	const shift = 3 + 71 + 11 - 3
	want := map[int32]float32{
		0:          1, // a day
		1 + 2:      1,
		4 + 50:     1,
		75 + 9:     1,
		4 + shift:  1, // all bytes that 32 bits can count
		14 + shift: 1, // su_attempted
		22 + shift: 1,
		23 + shift: 1. / 511,
		28 + shift: 1,
		29 + shift: 0.25,
		31 + shift: 1, // cut off
		32 + shift: 254. / 255,
		33 + shift: 1,
		34 + shift: 0.01,
	}
	features := make(map[int32]float32)
	indices, values := got.Row(0)
	for k, index := range indices {
		features[index] = values[k]
	}
	if diff := cmp.Diff(want, features); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestKDDCup99Tables(t *testing.T) {
	last := kddColumns[len(kddColumns)-1]
	if len(kddColumns) != 41 || last.first != KDDCup99Dim-1 {
		t.Errorf("%d columns, the last one is feature %d of %d", len(kddColumns), last.first, KDDCup99Dim)
	}
	for _, c := range kddColumns {
		for i := 1; i < len(c.values); i++ {
			if c.values[i-1] >= c.values[i] {
				t.Errorf("%s: %s is not before %s, as a binary search needs", c.name, c.values[i-1], c.values[i])
			}
		}
		if c.values == nil && (c.scale.apply(0) != 0 || c.scale.apply(float32(c.scale.limit)) != 1 || c.scale.apply(math.MaxFloat32) != 1) {
			t.Errorf("%s: scale %+v does not take 0 and its limit to 0 and 1", c.name, c.scale)
		}
	}
}

func TestReadKDDCup99Errors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"udp", "UDP", `f:1:7: protocol_type "UDP" is unknown`},
		{"private", "", `f:1:11: service "" is unknown`},
		{"0.25", "-0.25", `f:1:98: diff_srv_rate -0.25 is negative`},
		{"0.25", "x", `f:1:98: diff_srv_rate "x" is not a finite number`},
		{",udp", "", `f:1:1: 41 fields, want 42`},
		{"normal.", "normal", `f:1:156: label "normal" does not end with a full stop`},
	} {
		text := strings.Replace(connection+"normal.\n", tt.old, tt.new, 1)
		_, err := ReadKDDCup99(strings.NewReader(text), "f")
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}

func FuzzReadKDDCup99(f *testing.F) {
	f.Add(connection + "normal.\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ReadKDDCup99(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		checkShape(t, d)
		for i := range d.Rows {
			if norm := d.SquaredNorm(i); !(norm <= 41) {
				t.Errorf("row %d has squared norm %v", i, norm)
			}
		}
	})
}
