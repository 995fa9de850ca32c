package dataset

import (
	"errors"
	"fmt"
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
	if len(kddColumns) != 42 || dimOf(kddColumns) != KDDCup99Dim {
		t.Errorf("%d columns with %d features, want 42 and %d", len(kddColumns), dimOf(kddColumns), KDDCup99Dim)
	}
	limits := map[string]float64{
		"duration": 86400, "src_bytes": 1<<32 - 1, "dst_bytes": 1<<32 - 1, "su_attempted": 2,
		"count": 511, "srv_count": 511, "dst_host_count": 255, "dst_host_srv_count": 255,
		"wrong_fragment": 1023, "urgent": 1023, "hot": 1023, "num_failed_logins": 1023, "num_compromised": 1023, "num_root": 1023,
		"num_file_creations": 1023, "num_shells": 1023, "num_access_files": 1023, "num_outbound_cmds": 1023,
	}
	for _, c := range kddColumns {
		if c.features != 1 {
			continue
		}
		limit, isListed := limits[c.name]
		if !isListed {
			limit = 1 // a truth value or a rate
		}
		feature := func(x float64) float32 {
			_, value, err := c.encode(fmt.Sprint(x))
			require.NoError(t, err)
			return value
		}
		if feature(0) != 0 || !(feature(0.99*limit) < 1) || feature(limit) != 1 || feature(math.MaxFloat32) != 1 {
			t.Errorf("%s: 0 and %g do not become 0 and 1", c.name, limit)
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
