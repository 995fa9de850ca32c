package statement

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// RegistrySchema is the version of the registry's schema that [Registry] follows. The schema has no version
// number, and changes.
const RegistrySchema = "opendp/deployments-registry-data, schemas/deployments-schema.yaml, commit 057e5d81cf60"

// Registry is a draft of a record of the Differential Privacy Deployments Registry (OpenDP and NIST).
type Registry []Field

// Field is a field of a record.
type Field struct {
	// Path in the record, with points.
	Path string
	// Value is a text, a number, or a list.
	Value any
	// FillIn says that Value is a question for a person.
	FillIn bool
}

// MarshalJSON writes the version of the schema, the record, and the paths that a person fills in.
func (r Registry) MarshalJSON() ([]byte, error) {
	record := make(map[string]any)
	fillIn := []string{}
	for _, f := range r {
		object, path := record, strings.Split(f.Path, ".")
		for _, name := range path[:len(path)-1] {
			below, ok := object[name].(map[string]any)
			if !ok {
				below = make(map[string]any)
				object[name] = below
			}
			object = below
		}
		object[path[len(path)-1]] = f.Value
		if f.FillIn {
			fillIn = append(fillIn, f.Path)
		}
	}
	return json.Marshal(struct {
		Schema string         `json:"schema"`
		Record map[string]any `json:"record"`
		FillIn []string       `json:"fill_in"`
	}{RegistrySchema, record, fillIn})
}

// text returns the text of an item, all of a section joined if name is empty.
func (s *Statement) text(section, name string) string {
	var all []string
	for _, part := range s.Sections {
		for _, item := range part.Items {
			if part.Title == section && !item.FillIn && (name == "" || item.Name == name) {
				all = append(all, item.Name+": "+item.Text)
			}
		}
	}
	return strings.Join(all, ". ")
}

// registry maps the statement to the fields of the registry.
func (m *maker) registry() Registry {
	var r Registry
	set := func(path string, value any) { r = append(r, Field{Path: "deployment." + path, Value: value}) }
	ask := func(path, question string) {
		r = append(r, Field{Path: "deployment." + path, Value: "FILL IN: " + question, FillIn: true})
	}
	study := m.study
	r = append(r, Field{Path: "url_slug", Value: id(study.GetName())})

	set("basic.name", title(study))
	r = append(r, Field{Path: "deployment.basic.data_curators", FillIn: true, Value: []map[string]string{{
		"data_curator_name": "FILL IN: who publishes it", "data_curator_type": "FILL IN: Government, Industry or Nonprofit",
	}}})
	set("basic.description", m.s.Claim)
	ask("basic.intended_use", "what it is for")
	product := "Machine learning model"
	if m.s.IncludesTuning {
		product = "Summary statistics"
	}
	set("basic.data_product_type", product)
	ask("basic.data_product_region", "the region that the data describes, and whose law applies")
	ask("basic.data_product_sector", "Technology, Healthcare, Education, Government, Energy or Finance")
	ask("basic.publication_date", "YYYY-MM-DD")

	variant := "Approximate DP"
	if m.s.Guarantee.Delta == 0 {
		variant = "Pure DP"
	}
	set("dp_variant.variant_name", variant)
	ask("dp_variant.data_domain", "which data sets are possible")
	set("dp_variant.unprotected_quantities", "labels, names and times; "+m.s.text("What is released", "Not released")+m.s.text("What is released", "Not covered"))

	set("privacy_loss.privacy_unit", m.unitName())
	set("privacy_loss.privacy_unit_details", m.s.text("Who is protected", "Adjacency"))
	if n, err := strconv.ParseInt(m.records, 10, 64); err == nil && m.perUser == "" {
		set("privacy_loss.number_of_privacy_units", n)
	} else {
		ask("privacy_loss.number_of_privacy_units", "how many "+m.unitName()+"s there are")
	}
	set("privacy_loss.privacy_parameters.epsilon", m.s.Guarantee.Epsilon)
	if m.s.Guarantee.Delta > 0 {
		set("privacy_loss.privacy_parameters.delta", m.s.Guarantee.Delta)
	}
	set("privacy_loss.privacy_parameters_details", m.s.text("What an attacker can do", ""))

	set("deployment_model.model_name", "Central")
	ask("deployment_model.trust_assumptions", "people who see the records, the workers and the results of runs, and the reason to trust them")
	ask("deployment_model.actors", "who receives the data product")
	set("deployment_model.release_type", "One release")
	set("deployment_model.data_source_type", "Static")
	set("deployment_model.access_type", "Non-interactive")

	set("implementation.preprocessing_and_hyperparameter_tuning", m.s.text("What the search cost", "")+". FILL IN: the pre-processing that looked at the data")
	set("implementation.mechanisms", m.s.text("What was accounted and executed", "")+". "+m.s.text("Versions", "Server"))
	set("implementation.composition", compositionText(m.s))
	set("implementation.post_processing", "none by dpareto")
	ask("implementation.justification", "why this ε, this δ and this unit")
	set("implementation.additional_information", m.s.text("How to compute it again", "")+m.s.text("How to check it", ""))
	set("administrative.status", "Draft")
	r = append(r, Field{Path: "deployment.administrative.registry_authors", FillIn: true, Value: []string{"FILL IN: who fills in this record"}})
	set("administrative.tier", 3)
	return r
}

// title returns the name of a study.
func title(study *dparetov1.Study) string {
	if name := study.GetDisplayName(); name != "" {
		return name
	}
	return id(study.GetName())
}

// compositionText says how the steps of a run, and the runs, add up.
func compositionText(s *Statement) string {
	runs := "the runs of the search are not composed into ε"
	if s.IncludesTuning {
		runs = "ε covers all runs of the search"
	}
	return fmt.Sprintf("all steps of a run are composed by the accountant %s; %s", s.Guarantee.Accountant, runs)
}
