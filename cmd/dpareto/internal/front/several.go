package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// member is one of several studies that are shown together.
type member struct {
	study       *dparetov1.Study
	front       *dparetov1.Front
	best, worst *dparetov1.Front // for the band, or nil
	history     []*dparetov1.HypervolumePoint
}

func (m *member) id() string { return view.ID(m.study.GetName()) }

// name names the study in a legend.
func (m *member) name() string {
	if title := view.Title(m.study); title != m.id() {
		return m.id() + ": " + title
	}
	return m.id()
}

// showSeveral prints the fronts of several studies, or their hypervolumes over time, one below the other, and
// draws them over each other if a file is given.
func (f *flags) showSeveral(ctx context.Context, logger *slog.Logger, out *command.Printer, client *dpareto.Client, ids []string) error {
	var members []*member
	for _, id := range ids {
		m, err := f.read(ctx, client.Study(id))
		if err != nil {
			return fmt.Errorf("study %s: %w", id, err)
		}
		if len(members) > 0 {
			if err := sameObjectives(members[0], m); err != nil {
				return err
			}
		}
		members = append(members, m)
	}
	if f.picture != "" {
		save := overlay(f.kind, members).Save
		if f.overTime {
			save = overlayHistories(f.kind, members).Save
		}
		if err := save(f.picture); err != nil {
			return err
		}
		logger.Info("drew the studies", "file", f.picture)
	}
	return f.printSeveral(out, members)
}

// read reads what is shown of a study.
func (f *flags) read(ctx context.Context, handle *dpareto.Study) (*member, error) {
	study, err := handle.Get(ctx)
	if err != nil {
		return nil, err
	}
	m := &member{study: study}
	if f.overTime {
		resp, err := handle.Hypervolumes(ctx, f.kind)
		m.history = resp.GetPoints()
		return m, err
	}
	if m.front, err = handle.Front(ctx, f.kind); err != nil || !f.spread {
		return m, err
	}
	if m.best, err = handle.Front(ctx, dparetov1.FrontKind_FRONT_KIND_BEST); err != nil {
		return nil, err
	}
	m.worst, err = handle.Front(ctx, dparetov1.FrontKind_FRONT_KIND_WORST)
	return m, err
}

// sameObjectives returns an error unless a study has the objectives of the first one.
func sameObjectives(first, other *member) error {
	describe := func(m *member) string {
		var parts []string
		for _, o := range show.Objectives(m.study.GetSpec()) {
			parts = append(parts, enum.Name(o.GetGoal())+" "+o.GetId())
		}
		return strings.Join(parts, ", ")
	}
	if want, got := describe(first), describe(other); want != got {
		return fmt.Errorf("study %s has other objectives (%s) than study %s (%s); they cannot be shown together", other.id(), got, first.id(), want)
	}
	return nil
}

// checkSeveral checks the flags of a command for more than one study.
func (f *flags) checkSeveral(ids []string) error {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return fmt.Errorf("study %s is given twice", id)
		}
	}
	if len(ids) > 1 && f.remeasure {
		return errors.New("--remeasure takes one study")
	}
	if f.spread && (f.picture == "" || f.overTime || f.remeasure) {
		return errors.New("--spread needs --plot, and shows fronts: without --over-time and --remeasure")
	}
	return nil
}

// statements returns what the ε of the studies mean, in one line if they mean the same, and what else a
// picture must say of them.
func statements(members []*member) (lines []string) {
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = show.PrivacyStatement(m.study.GetSpec())
	}
	if same := slices.Compact(slices.Clone(all)); len(same) == 1 && same[0] != "" {
		lines = append(lines, same[0])
	} else if len(same) > 1 {
		for i, m := range members {
			if all[i] == "" {
				all[i] = "no ε is computed"
			}
			lines = append(lines, m.id()+": "+all[i])
		}
	}
	for _, m := range members {
		if m.front != nil && isSeeded(m.front) {
			lines = append(lines, m.id()+": "+seededLine)
		}
	}
	return lines
}

// overlay returns the picture of the fronts, of the first two objectives.
func overlay(kind dparetov1.FrontKind, members []*member) *plot.Fronts {
	var titles []string
	picture := &plot.Fronts{Subtitle: append([]string{enum.Name(kind) + " fronts"}, statements(members)...)}
	for i, m := range members {
		titles = append(titles, m.id())
		spec := m.study.GetSpec()
		objectives := show.Objectives(spec)
		x, y := objectives[0], objectives[min(1, len(objectives)-1)]
		if i == 0 {
			picture.X, picture.Y = axis(spec, m.front, x), axis(spec, m.front, y)
			if n := len(objectives); n > 2 {
				picture.Subtitle = append(picture.Subtitle, fmt.Sprintf("the first 2 of %d objectives", n))
			}
		} else {
			widen(&picture.X, axis(spec, m.front, x))
			widen(&picture.Y, axis(spec, m.front, y))
		}
		picture.Fronts = append(picture.Fronts, plot.FrontSeries{
			Name:  fmt.Sprintf("%s, hypervolume %s", m.name(), show.Number(m.front.GetHypervolume())),
			Front: places(m.front, x, y), Best: places(m.best, x, y), Worst: places(m.worst, x, y),
		})
		if m.best != nil && i == 0 {
			picture.Subtitle = append(picture.Subtitle, "band: fronts of the best and of the worst run of each configuration")
		}
	}
	picture.Title = "Fronts of " + strings.Join(titles, ", ")
	return picture
}

// widen takes the worse reference of two axes, and a logarithmic axis only where both are.
func widen(a *plot.Axis, other plot.Axis) {
	a.Log = a.Log && other.Log
	if a.Maximise {
		a.Reference = min(a.Reference, other.Reference)
	} else {
		a.Reference = max(a.Reference, other.Reference)
	}
}

// places returns the points of a front within the anti-ideal box, none of none.
func places(front *dparetov1.Front, x, y *dparetov1.MetricSpec) (points []plot.Point) {
	for _, p := range front.GetPoints() {
		if !p.GetBeyondReference() {
			points = append(points, plot.Point{X: p.GetValues()[x.GetId()].GetValue(), Y: p.GetValues()[y.GetId()].GetValue()})
		}
	}
	return points
}

// overlayHistories returns the picture of hypervolumes: over the steps trained if all studies count the same ones.
func overlayHistories(kind dparetov1.FrontKind, members []*member) *plot.Curves {
	steps := members[0].study.GetSpec().GetCheckpointParameter()
	var titles []string
	for _, m := range members {
		titles = append(titles, m.id())
		if m.study.GetSpec().GetCheckpointParameter() != steps {
			steps = ""
		}
	}
	picture := &plot.Curves{
		Title: strings.Join(titles, ", "), Subtitle: append([]string{enum.Name(kind) + " front"}, statements(members)...),
		X: trialsName, Y: "hypervolume", Rising: true,
	}
	if steps != "" {
		picture.X = steps
	}
	for _, m := range members {
		s := plot.Series{Name: m.name(), Steps: true}
		for _, p := range m.history {
			x := p.GetCompletedTrials()
			if steps != "" {
				x = p.GetSteps()
			}
			s.X, s.Y = append(s.X, float64(x)), append(s.Y, p.GetHypervolume())
		}
		picture.Curves = append(picture.Curves, s)
	}
	return picture
}

// printSeveral prints the tables one below the other, with a column for the study. As JSON, a front is named by
// its study, and a point of a hypervolume by its trial.
func (f *flags) printSeveral(out *command.Printer, members []*member) error {
	t := &output.Table{Columns: []string{"study"}}
	var names []string
	var fronts []proto.Message
	var history []*dparetov1.HypervolumePoint
	for _, m := range members {
		spec := m.study.GetSpec()
		history = append(history, m.history...)
		if f.overTime {
			stack(t, m.id(), hypervolumeTable(spec, m.history))
			continue
		}
		names, fronts = append(names, m.id()), append(fronts, m.front)
		if err := out.Heading(Heading(m.study, m.front)); err != nil {
			return err
		}
		shown, wide := m.front, f.wide || out.Format != output.Text
		if out.Format == output.Text && !f.all {
			shown = spread(spec, m.front, shownPoints)
		}
		stack(t, m.id(), table(spec, shown, wide))
	}
	switch {
	case f.overTime:
		return view.PrintAll(out, t, history)
	case out.Format == output.JSON:
		return view.WriteNamed(out, names, fronts)
	default:
		return out.Table(t)
	}
}

// stack adds the rows of a study's table to one of several, whose first column is the study. Columns that it does
// not have yet are added.
func stack(t *output.Table, study string, more *output.Table) {
	at := make([]int, len(more.Columns))
	for i, column := range more.Columns {
		if at[i] = slices.Index(t.Columns, column); at[i] < 0 {
			at[i] = len(t.Columns)
			t.Columns = append(t.Columns, column)
		}
	}
	for i, row := range t.Rows {
		t.Rows[i] = append(row, make([]any, len(t.Columns)-len(row))...)
	}
	for _, from := range more.Rows {
		row := make([]any, len(t.Columns))
		row[0] = study
		for i, cell := range from {
			row[at[i]] = cell
		}
		t.Rows = append(t.Rows, row)
	}
}
