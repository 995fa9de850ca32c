package suggest

import (
	"maps"
	"slices"
)

// designers makes the designers by name, given their number of initial points, 0 for the
// default.
var designers = map[string]func(initial int) Designer{
	"random":       func(int) Designer { return NewRandom() },
	"grid":         func(int) Designer { return NewGrid() },
	"quasi_random": func(int) Designer { return NewQuasiRandom() },
	"default":      func(initial int) Designer { return NewDefault(EngineOptions{InitialPoints: initial}) },
	"ehvi":         func(initial int) Designer { return NewEHVI(EngineOptions{InitialPoints: initial}) },
	"ehvi_exact":   func(initial int) Designer { return newEHVIExact(EngineOptions{InitialPoints: initial}) },
	"dpareto":      func(initial int) Designer { return NewDPareto(DParetoOptions{InitialPoints: initial}) },
	"nsga2":        func(initial int) Designer { return NewNSGA2(NSGA2Options{InitialPoints: initial}) },
}

// DesignerByName returns the designer of a name, see [Designer].Name, with its default
// options but for the number of configurations drawn before the first model: initial, or
// the default for 0. Designers without a model ignore it. It returns false if there is no
// designer of that name.
func DesignerByName(name string, initial int) (Designer, bool) {
	newDesigner, ok := designers[name]
	if !ok {
		return nil, false
	}
	return newDesigner(initial), true
}

// DesignerNames returns the names that [DesignerByName] knows, sorted.
func DesignerNames() []string { return slices.Sorted(maps.Keys(designers)) }
