package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/words"
)

//go:embed templates
var templateFiles embed.FS

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

// Render answers with a view or a part.
func (s *Site) Render(w http.ResponseWriter, code int, name string, data any) {
	content, err := s.templates.bytes(name, data)
	if err != nil {
		http.Error(w, "this page cannot be drawn: "+err.Error(), http.StatusInternalServerError)
		return
	}
	limitWriting(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(content) //nolint:gosec // made by a template, which escapes; the reader may have gone
}

// functions are what templates call.
func functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":    a.url,
		"views":    func() []studyView { return studyViews },
		"id":       ID,
		"join":     strings.Join,
		"time":     words.Time,
		"waitLink": waitLink,

		"assumption": show.Assumption,
		"number":     show.Number,
		"minus":      words.Minus,
		"up":         show.NumberUp,
		"delta":      show.Delta,
		"deltaOf":    words.DeltaOf,
		"duration":   show.Duration,
		"name":       enum.Name,

		"percent":    words.Percent,
		"share":      words.Share,
		"percentUp":  words.PercentUp,
		"ratio":      words.Ratio,
		"value":      words.Value,
		"exact":      show.Value,
		"metric":     words.Metric,
		"epsilon":    words.Epsilon,
		"guarantee":  words.Guarantee,
		"accountant": words.Accountant,
		"three":      words.Three,
		"title":      words.Title,
		"domain":     show.Domain,
		"measure":    words.MetricValue,
		"meaning":    words.Meaning,
		"count":      show.Count,
		"warning":    words.WarningOf,
		"seeded":     func() string { return words.Seeded },

		"key": chart.Key,
		"bar": chart.Bar,

		"requestID": NewRequestID,
		"field":     newField,
	}
}

// waitLink leads to the view with the same settings, with all parts in it.
func waitLink(query url.Values) string {
	all := maps.Clone(query)
	all.Set("wait", "1")
	return "?" + all.Encode()
}
