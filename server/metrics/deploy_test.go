package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/internal/require"
)

// exported returns the families of metrics by name.
func exported(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := full().Gatherer().Gather()
	require.NoError(t, err)
	byName := make(map[string]*dto.MetricFamily)
	for _, family := range families {
		byName[family.GetName()] = family
	}
	return byName
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	require.NoError(t, err)
	return text
}

// labels returns the names of the labels of a family.
func labels(family *dto.MetricFamily) []string {
	var names []string
	for _, label := range family.GetMetric()[0].GetLabel() {
		names = append(names, label.GetName())
	}
	return names
}

// The documentation lists the metrics that there are, with their types and labels.
func TestDocumentation(t *testing.T) {
	families := exported(t)
	documented := make(map[string]bool)
	row := regexp.MustCompile("(?m)^\\| `(dpareto_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	for _, match := range row.FindAllStringSubmatch(string(read(t, "docs/reference/observability.md")), -1) {
		name := match[1]
		documented[name] = true
		family, ok := families[name]
		if !ok {
			t.Errorf("%s is documented and does not exist", name)
			continue
		}
		if kind := strings.ToLower(family.GetType().String()); kind != match[2] {
			t.Errorf("%s is a %s, the documentation says %s", name, kind, match[2])
		}
		var said []string
		for label := range strings.SplitSeq(match[3], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				said = append(said, label)
			}
		}
		slices.Sort(said)
		if got := labels(family); !slices.Equal(got, said) {
			t.Errorf("%s has the labels %v, the documentation says %v", name, got, said)
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "dpareto_") && !documented[name] {
			t.Errorf("%s is not documented", name)
		}
	}
}

var (
	queried  = regexp.MustCompile(`\b(?:dpareto|go|process)_[a-z0-9_]+`)
	selected = regexp.MustCompile(`\b((?:dpareto|go|process)_[a-z0-9_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
)

// checkQuery checks that what a query asks for is exported.
func checkQuery(t *testing.T, where, query string) {
	t.Helper()
	families := exported(t)
	find := func(name string) *dto.MetricFamily {
		if family, ok := families[name]; ok {
			return family
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			family, ok := families[strings.TrimSuffix(name, suffix)]
			if ok && strings.HasSuffix(name, suffix) && family.GetType() == dto.MetricType_HISTOGRAM {
				return family
			}
		}
		return nil
	}
	for _, name := range queried.FindAllString(query, -1) {
		if find(name) == nil {
			t.Errorf("%s: %s is not exported", where, name)
		}
	}
	for _, match := range selected.FindAllStringSubmatch(query, -1) {
		for _, label := range matcher.FindAllStringSubmatch(match[2], -1) {
			family := find(match[1])
			if name := label[1]; name != "job" && family != nil && !slices.Contains(labels(family), name) {
				t.Errorf("%s: %s has no label %s", where, match[1], name)
			}
		}
	}
	if strings.Count(query, "(") != strings.Count(query, ")") {
		t.Errorf("%s: unbalanced brackets: %s", where, query)
	}
}

// The dashboard shows what is exported, and each metric of ours is on it.
func TestDashboard(t *testing.T) {
	text := read(t, "deploy/grafana/dashboard.json")
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	ids := make(map[int]bool)
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the id %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			if !queried.MatchString(target.Expr) {
				t.Errorf("%s: %q asks for no metric", panel.Title, target.Expr)
			}
			checkQuery(t, panel.Title, target.Expr)
		}
	}
	for name := range exported(t) {
		if strings.HasPrefix(name, "dpareto_") && !strings.Contains(string(text), name) {
			t.Errorf("%s is not on the dashboard", name)
		}
	}
}

// The alerts ask for what is exported, and say what to do.
func TestAlerts(t *testing.T) {
	var config struct {
		RuleFiles []string `json:"rule_files"`
	}
	require.NoError(t, yaml.UnmarshalStrict(read(t, "deploy/prometheus/prometheus.yml"), &struct {
		Global        map[string]any   `json:"global"`
		ScrapeConfigs []map[string]any `json:"scrape_configs"`
		RuleFiles     *[]string        `json:"rule_files"`
	}{RuleFiles: &config.RuleFiles}))
	if !slices.Equal(config.RuleFiles, []string{"alerts.yml"}) {
		t.Errorf("rule files %v", config.RuleFiles)
	}
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.UnmarshalStrict(read(t, "deploy/prometheus/alerts.yml"), &rules))
	for _, rule := range rules.Groups[0].Rules {
		checkQuery(t, rule.Alert, rule.Expr)
		if rule.For == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s: incomplete: %+v", rule.Alert, rule)
		}
	}
	if n := len(rules.Groups[0].Rules); n < 5 {
		t.Errorf("%d rules", n)
	}
}
