package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
)

//go:embed templates
var templateFiles embed.FS

// page is what the frame around every view shows.
type page struct {
	Title  string // of the view
	SignIn bool   // there is a sign-in, so offer to sign out
	// Caller is the reader; empty where everybody may do everything.
	Caller string
	// Study is the study that the view is about; nil for others.
	Study *dparetov1.Study
	// View names the current view among those of a study.
	View string
	// Role is what the reader may do with the study, or on the whole server.
	Role dparetov1.Role
}

// CanWork reports whether the reader may create, stop and annotate trials.
func (p *page) CanWork() bool { return p.Role >= dparetov1.Role_ROLE_WORKER }

// CanAdminister reports whether the reader may change the study.
func (p *page) CanAdminister() bool { return p.Role >= dparetov1.Role_ROLE_ADMIN }

// Path returns the path of the study.
func (p *page) Path() string { return "/studies/" + id(p.Study.GetName()) }

// templates are the parsed templates: whole views in the frame of layout.html, and parts alone.
type templates struct{ byName map[string]*template.Template }

// parseTemplates parses templates/*.html. A file with a "content" template is a view; the other
// templates in all files are parts.
func parseTemplates(a *assets) (*templates, error) {
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	base, err := template.New("base").Funcs(functions(a)).ParseFS(templateFiles, "templates/layout.html", "templates/parts*.html")
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	t := &templates{byName: make(map[string]*template.Template)}
	for _, part := range base.Templates() {
		t.byName[part.Name()] = part
	}
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || strings.HasPrefix(name, "parts") {
			continue
		}
		all, err := base.Clone()
		if err == nil {
			all, err = all.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		t.byName[name] = all.Lookup("layout.html")
	}
	return t, nil
}

// write writes a view or a part.
func (t *templates) write(w io.Writer, name string, data any) error {
	found, ok := t.byName[name]
	if !ok {
		return fmt.Errorf("web: there is no template %q", name)
	}
	return found.Execute(w, data)
}

// bytes returns a view or a part.
func (t *templates) bytes(name string, data any) ([]byte, error) {
	var content bytes.Buffer
	if err := t.write(&content, name, data); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// render answers with a view or a part.
func (s *site) render(w http.ResponseWriter, code int, name string, data any) {
	content, err := s.templates.bytes(name, data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(content) //nolint:gosec // made by a template, which escapes; the reader may have gone
}

// functions are what templates call.
func functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":    a.url,
		"id":       id,
		"number":   show.Number,
		"up":       show.NumberUp,
		"down":     show.NumberDown,
		"delta":    show.Delta,
		"percent":  percent,
		"duration": show.Duration,
		"name":     enum.Name,
		"value":    valueText,
		"list":     func(items ...any) []any { return items },
		"time":     timeText,
		"join":     strings.Join,
		"metric":   metricText,
		"title":    title,
		"domain":   domainText,
		"ensured":  fullGuarantee,
		"key":      chart.Key,
		"views":    func() []studyView { return studyViews },

		"requestID": newRequestID,
		"field":     newFieldView,
		"epsilon":   epsilonText,

		"percentUp": percentUp,
		"guarantee": show.AccountantText,
		"adjacency": guaranteeAdjacency,
		"deltaText": show.DeltaText,
		"ratio":     ratio,
		"waitLink":  waitLink,
		"exact":     exactValue,
		"bar":       chart.Bar,
	}
}

// percent returns a share in percent with as many digits as matter.
func percent(x float64) string { return show.Number(100*x) + " %" }

// valueText returns the value of a parameter as people read it.
func valueText(v *dparetov1.Value) string {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return show.Number(kind.DoubleValue)
	case *dparetov1.Value_IntValue:
		return strconv.FormatInt(kind.IntValue, 10)
	case *dparetov1.Value_StringValue:
		return kind.StringValue
	default:
		return ""
	}
}

// timeText returns a time as a <time> element, which page.js turns into the reader's own time zone.
func timeText(t time.Time) bare {
	t = t.UTC()
	return bare(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format("2006-01-02 15:04:05") + ` UTC</time>`)
}

// objectives returns the metrics of a study that are coordinates of its front.
func objectives(spec *dparetov1.StudySpec) []*dparetov1.MetricSpec {
	return slices.DeleteFunc(slices.Clone(spec.GetMetrics()), func(m *dparetov1.MetricSpec) bool {
		return m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE
	})
}
