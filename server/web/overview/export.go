package overview

import (
	"encoding/csv"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/look"
	"github.com/dpareto/dpareto/server/web/site"
)

// exportFront sends the front as a file, with the settings of its picture: /studies/{study}/front/{file},
// where file is front.svg, front.csv or front.json.
func (s views) exportFront(w http.ResponseWriter, r *http.Request) error {
	ctx := site.Outgoing(r)
	request := &site.PartRequest{Study: site.StudyName(r), Query: r.URL.Query()}
	made, err := s.frontPart(ctx, request)
	if err != nil {
		return err
	}
	d := made.(*frontData) //nolint:forcetypeassert // the result of the part
	header := w.Header()
	send := func(contentType string) {
		header.Set("Content-Type", contentType)
		header.Set("Content-Disposition", `attachment; filename="`+site.ID(r.PathValue("study"))+"-"+r.PathValue("file")+`"`)
	}
	switch r.PathValue("file") {
	case "front.svg":
		if len(d.Objectives()) != 2 || d.Front() == nil {
			return site.Invalid(errNoPicture)
		}
		send("image/svg+xml")
		// Its style is in the file; nothing else is loaded, and no script runs.
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
		_, err = w.Write([]byte(standalone(d.plane("front", 0, 1, chart.Wide))))
	case "front.csv":
		send("text/csv; charset=utf-8")
		err = csv.NewWriter(w).WriteAll(d.records())
	case "front.json":
		var content []byte
		if content, err = protojson.Marshal(d.Front()); err != nil {
			return err
		}
		send("application/json")
		_, err = w.Write(content)
	default:
		return site.Invalid(errNoFile)
	}
	return ignoreGone(err)
}

var (
	errNoFile    = errors.New("file must be front.svg, front.csv or front.json")
	errNoPicture = errors.New("only fronts of two objectives are one picture")
)

// ignoreGone forgets that a reader has gone: the answer has begun.
func ignoreGone(error) error { return nil }

// standalone returns a picture as a file, light and with a ground.
func standalone(c *chart.Chart) template.HTML { return c.File(look.CSS) }

// records returns the front as a table: exact values, and the meaning of the ε of each point.
func (d *frontData) records() [][]string {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	head := []string{"trial", "step", runsName}
	for _, m := range d.Objectives() {
		head = append(head, m.GetId(), m.GetId()+"_lower", m.GetId()+"_upper", m.GetId()+"_measured")
	}
	for _, p := range d.Study.GetSpec().GetParameters() {
		head = append(head, p.GetId())
	}
	rows := [][]string{append(head, "delta", "adjacency", "note")}
	for _, p := range d.Front().GetPoints() {
		row := []string{site.ID(p.GetTrial()), strconv.FormatInt(p.GetStep(), 10), strconv.FormatInt(p.GetRuns(), 10)}
		for _, m := range d.Objectives() {
			v := p.GetValues()[m.GetId()]
			row = append(row, number(new(v.GetValue())), number(v.Lower), number(v.Upper), number(v.Observed)) //nolint:protogetter // what is not there is not 0
		}
		for _, parameter := range d.Study.GetSpec().GetParameters() {
			text := ""
			if v := p.GetParameters()[parameter.GetId()]; v != nil {
				text = show.Value(v)
			}
			row = append(row, text)
		}
		note := pointNote(p)
		if d.Seeded() {
			note = strings.TrimPrefix(note+", runs were seeded: no ε holds", ", ")
		}
		delta, adjacency := "", ""
		if g := p.GetPrivacy(); g != nil {
			delta, adjacency = number(new(g.GetDelta())), enum.Name(g.GetAdjacency())
		}
		rows = append(rows, append(row, delta, adjacency, note))
	}
	return slices.Clip(rows)
}
