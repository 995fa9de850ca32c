package expression

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Expressions that would take forever, or all memory, are refused when they are compiled
// or stopped when they are evaluated. The test itself would not end otherwise.
func TestBombs(t *testing.T) {
	e := environment(t)
	repeat := func(n int, s string) string { return strings.Repeat(s, n) }
	tens := "[0,1,2,3,4,5,6,7,8,9]"
	nested := func(depth int, macro, inner string) string {
		var open strings.Builder
		for i := range depth {
			open.WriteString(tens + "." + macro + "(v" + string(rune('a'+i)) + ",")
		}
		return open.String() + inner + repeat(depth, ")")
	}
	const refused, stopped, cheap = "refused", "stopped", "cheap"
	for name, tt := range map[string]struct{ source, want string }{
		"nested all":        {nested(20, "all", "true"), stopped},
		"nested exists":     {nested(20, "exists", "false"), stopped},
		"nested exists_one": {nested(12, "exists_one", "true"), stopped},
		"nested map":        {nested(12, "map", "1") + ".size() > 0", stopped},
		"map of strings":    {nested(8, "map", "'"+repeat(500, "x")+"'") + ".size() > 0", stopped},
		"sum of strings":    {repeat(240, "'a'+") + "''!=''", stopped},
		"lists":             {repeat(200, "[") + "1" + repeat(200, "]") + ".size()>0", refused},
		"maps":              {repeat(190, "{1:") + "1" + repeat(190, "}") + ".size()>0", refused},
		"indexes":           {"[1]" + repeat(100, "[0]") + ">0", refused},
		"most brackets":     {repeat(32, "{1:") + "1" + repeat(32, "}") + ".size()>0", stopped},
		"parentheses":       {repeat(490, "(") + "1" + repeat(490, ")") + ">0", refused},
		"selections":        {"epochs" + repeat(400, ".n") + ">0", refused},
		"sums":              {repeat(490, "1+") + "1>0", refused},
		"too long":          {repeat(501, "1+") + "1>0", refused},
		"regular":           {"'" + repeat(800, "a") + "'.matches('((a{30}){30}){30}(a+)+$')", stopped},
		"unterminated":      {"'" + repeat(400, "\\x"), refused},
		"negations":         {repeat(990, "!") + "true", cheap},
		"calls":             {repeat(150, "int(") + "epochs" + repeat(150, ")") + ">0", cheap},
	} {
		got := cheap
		if p, err := e.Predicate(tt.source); err != nil {
			got = refused
		} else if _, err := p.Holds(values); err != nil {
			got = stopped
		}
		if got != tt.want {
			t.Errorf("%s is %s, want %s", name, got, tt.want)
		}
	}
}

// The bound on the work of one evaluation holds for numbers, too.
func TestNumberBomb(t *testing.T) {
	e := environment(t)
	tens := "[0,1,2,3,4,5,6,7,8,9]"
	n, err := e.Number(tens + ".map(a," + tens + ".map(b," + tens + ".map(c," + tens + ".map(d,a+b+c+d)))).size()")
	require.NoError(t, err)
	if _, err := n.Float(map[string]any{}); err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("error %v", err)
	}
}
