package trials

import (
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/site"
)

var errNoFile = errors.New("file must be trials.csv or trials.json")

// exportTrials sends the trials of the table's filter as a file, page by page:
// /studies/{study}/trials/export/{file}, where file is trials.csv or trials.json.
func (s views) exportTrials(w http.ResponseWriter, r *http.Request) error {
	ctx := site.Outgoing(r)
	study, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: site.StudyName(r)})
	if err != nil {
		return err
	}
	var write func(trial *dparetov1.Trial, first bool) error
	contentType, end := "text/csv; charset=utf-8", ""
	switch r.PathValue("file") {
	case "trials.csv":
		table := csv.NewWriter(w)
		spec := study.GetStudy().GetSpec()
		write = func(trial *dparetov1.Trial, first bool) error {
			rows := [][]string{record(spec, trial)}
			if first {
				rows = append([][]string{head(spec)}, rows...)
			}
			return table.WriteAll(rows)
		}
	case "trials.json":
		contentType, end = "application/json", "]\n"
		write = func(trial *dparetov1.Trial, first bool) error {
			content, err := protojson.Marshal(trial)
			if err != nil {
				return err
			}
			separator := ",\n"
			if first {
				separator = "["
			}
			_, err = w.Write(append([]byte(separator), content...))
			return err
		}
	default:
		return site.Invalid(errNoFile)
	}
	q := newTrialsQuery(r.URL.Query())
	request := &dparetov1.ListTrialsRequest{Parent: site.StudyName(r), PageSize: 1000, Filter: q.condition(), OrderBy: q.Order}
	begun := false
	for {
		page, err := s.Studies.ListTrials(ctx, request)
		if err != nil {
			if begun {
				panic(http.ErrAbortHandler) // half of a file must not look whole
			}
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("study")+"-"+r.PathValue("file")+`"`)
		}
		for _, trial := range page.GetTrials() {
			if err := write(trial, !begun); err != nil {
				panic(http.ErrAbortHandler)
			}
			begun = true
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	if !begun && end != "" {
		end = "[]\n"
	}
	_, _ = io.WriteString(w, end) // the reader may have gone
	return nil
}

// head returns the heads of the exported table.
func head(spec *dparetov1.StudySpec) []string {
	names := []string{"trial", "state", "seeded"}
	for _, p := range spec.GetParameters() {
		names = append(names, p.GetId())
	}
	for _, m := range spec.GetMetrics() {
		names = append(names, m.GetId())
	}
	return append(names, "worker", "end_time", noteField)
}

// record returns a trial as a row of the exported table, with exact values.
func record(spec *dparetov1.StudySpec, trial *dparetov1.Trial) []string {
	row := []string{strconv.FormatInt(trial.GetNumber(), 10), enum.Name(trial.GetState()), strconv.FormatBool(show.IsSeeded(trial.GetWarnings()))}
	for _, p := range spec.GetParameters() {
		text := ""
		if v := trial.GetParameters()[p.GetId()]; v != nil {
			text = show.Value(v)
		}
		row = append(row, text)
	}
	for _, m := range spec.GetMetrics() {
		text := ""
		if v := metricOf(trial, m.GetId()); v != nil && v.Value != nil {
			text = strconv.FormatFloat(v.GetValue(), 'g', -1, 64)
		}
		row = append(row, text)
	}
	end := ""
	if trial.GetEndTime() != nil {
		end = trial.GetEndTime().AsTime().Format("2006-01-02T15:04:05Z")
	}
	return append(row, trial.GetWorkerId(), end, trial.GetNote())
}
