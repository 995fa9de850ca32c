package honesty

import (
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/lines"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// Options say which studies are made.
type Options struct {
	// Surfaces are names of [Names]. None means all.
	Surfaces []string
	// Seeds is the number of seeds: 1, 2, ..., Seeds.
	Seeds int
	// Folder keeps the runs of trainings and the results, so that a measurement that was interrupted goes on. Empty means that
	// nothing is kept.
	Folder string
	// Results is the file of the results, empty if none are kept.
	Results string
	// DataDir is a folder in which data files are looked for first.
	DataDir string
	// Progress is called with the number of studies done.
	Progress func(done int64)
}

// Studies returns the number of studies.
func (o *Options) Studies() (int64, error) {
	chosen, err := byName(o.Surfaces)
	return int64(len(chosen) * len(Diverged) * o.Seeds), err
}

// Run makes the studies that are not among the results yet, and returns the records of all. It returns the errors of data files
// and of models.
func Run(ctx context.Context, o Options) ([]Record, error) {
	chosen, err := byName(o.Surfaces)
	if err != nil {
		return nil, err
	}
	var all []Record
	if o.Results != "" {
		if all, err = lines.Read[Record](o.Results); err != nil {
			return nil, err
		}
	}
	pools := make(map[*training]*pool)
	var records []Record
	for i := range chosen {
		s := &chosen[i]
		problem, err := s.problem()
		if err != nil {
			return nil, err
		}
		for _, diverged := range Diverged {
			for seed := uint64(1); seed <= uint64(o.Seeds); seed++ {
				k := slices.IndexFunc(all, func(r Record) bool { return r.Surface == s.name() && r.Diverged == diverged && r.Seed == seed })
				if k >= 0 {
					records = append(records, all[k])
					continue
				}
				if pools[s.training] == nil {
					if pools[s.training], err = openPool(ctx, s.training, o.Folder, o.DataDir); err != nil {
						return nil, err
					}
				}
				st := newStudy(s, pools[s.training], problem, diverged, seed)
				if err := st.run(ctx); err != nil {
					return nil, err
				}
				records = append(records, *st.record)
				if o.Results != "" {
					if err := lines.Append(o.Results, st.record); err != nil {
						return nil, err
					}
				}
				if o.Progress != nil {
					o.Progress(int64(len(records)))
				}
			}
		}
	}
	return records, nil
}

// Table returns a row for each surface, for each number of diverged runs, and for all studies. A share has a 95 % interval, as if
// all that was counted were independent.
func Table(records []Record) *output.Table {
	t := &output.Table{Columns: []string{"studies_of", "diverged", "studies"}}
	for _, name := range []string{"claimed_within_10_percent", "front_covered", "held_out_covered", "recommended_held"} {
		t.Columns = append(t.Columns, name, name+"_of", name+"_share", name+"_lower", name+"_upper")
	}
	t.Columns = append(t.Columns, "refused", "impossible", "no_model")
	add := func(name string, diverged any, chosen func(*Record) bool) {
		var n, refused, impossible, none int
		var near, front, held, recommended share
		for i := range records {
			r := &records[i]
			if !chosen(r) {
				continue
			}
			n++
			near.count(r.near())
			front.add(r.Front)
			held.add(r.HeldOut)
			recommended.add(r.Recommended)
			refused += r.Refused
			impossible += r.Impossible
			if r.Contradicted {
				none++
			}
		}
		row := []any{name, diverged, int64(n)}
		for _, s := range []share{near, front, held, recommended} {
			row = append(row, s.cells()...)
		}
		t.Rows = append(t.Rows, append(row, int64(refused), int64(impossible), int64(none)))
	}
	for _, name := range Names() {
		if slices.ContainsFunc(records, func(r Record) bool { return r.Surface == name }) {
			add(name, nil, func(r *Record) bool { return r.Surface == name })
		}
	}
	for _, d := range Diverged {
		add("all", int64(d), func(r *Record) bool { return r.Diverged == d })
	}
	add("all", nil, func(*Record) bool { return true })
	return t
}

func (s *share) add(more share) {
	s.Held += more.Held
	s.Of += more.Of
}

// cells returns the numbers, the share and its 95 % interval by Wilson's score.
func (s *share) cells() []any {
	if s.Of == 0 {
		return []any{int64(0), int64(0), nil, nil, nil}
	}
	const z = 1.96
	n := float64(s.Of)
	p := float64(s.Held) / n
	centre, half := (p+z*z/(2*n))/(1+z*z/n), z/(1+z*z/n)*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return []any{int64(s.Held), int64(s.Of), p, centre - half, centre + half}
}
