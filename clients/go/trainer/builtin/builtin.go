// Package builtin names the trainers that come with dpareto.
package builtin

import (
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/outputperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
)

// Registry returns a new registry of the built-in trainers. The trainers made
// from one registry share their data, which is loaded once and only read: a
// process needs one registry.
func Registry() *trainer.Registry {
	var registry trainer.Registry
	cache := dataset.NewCache()
	registry.Register(sparsevector.Definition())
	registry.Register(dpsgd.Definition(cache, dpsgd.SGD))
	registry.Register(dpsgd.Definition(cache, dpsgd.Adam))
	registry.Register(dpsgd.DefinitionMF(cache))
	registry.Register(outputperturbation.Definition(cache))
	registry.Register(objectiveperturbation.Definition(cache))
	return &registry
}
