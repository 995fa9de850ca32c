package reproduce

import "context"

// Join returns the experiment of a name that runs several others, each of which draws figures of its
// own names. One whose data are missing is named in the result, and the others run. Progress starts again for each.
func Join(name, title string, all ...Experiment) Experiment { return &joined{name, title, all} }

type joined struct {
	name, title string
	all         []Experiment
}

// Name implements Experiment.
func (j *joined) Name() string { return j.name }

// Validate implements Experiment.
func (j *joined) Validate() error {
	for _, e := range j.all {
		if err := e.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Run implements Experiment.
func (j *joined) Run(ctx context.Context, watch Watch) (*Result, error) {
	whole := new(Result)
	whole.Report.Title = j.title
	for _, e := range j.all {
		r, err := e.Run(ctx, watch)
		if line, ok := Missing(e.Name(), err); ok {
			whole.Missing = append(whole.Missing, line)
			continue
		}
		if err != nil {
			return nil, err
		}
		whole.Missing = append(whole.Missing, r.Missing...)
		whole.Report.Notes = append(append(whole.Report.Notes, r.Report.Title+"."), r.Report.Notes...)
		whole.Report.Sections = append(whole.Report.Sections, r.Report.Sections...)
	}
	return whole, nil
}
