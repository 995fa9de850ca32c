package overview

import "github.com/dpareto/dpareto/server/web/site"

// views are the views of this room.
type views struct{ *site.Site }

// Routes returns the views by the patterns of [net/http.ServeMux].
func Routes(of *site.Site) map[string]site.View {
	s := views{of}
	return map[string]site.View{
		"GET /studies":                      s.showStudies,
		"GET /studies/{study}":              s.showStudy,
		"GET /studies/{study}/front/{file}": s.exportFront,
		"GET /ledgers":                      s.showLedgers,
		"GET /compare":                      s.showCompare,
		"GET /compare/fronts":               s.showComparison,
	}
}

// Parts returns the parts of the views by name.
func Parts(of *site.Site) map[string]site.Part {
	s := views{of}
	return map[string]site.Part{
		stateName:       s.statePart,
		frontName:       s.frontPart,
		"tiles":         s.tilesPart,
		"tile-trials":   s.statePart,
		"tile-spent":    s.spentPart,
		"tile-gain":     s.gainTilePart,
		"running":       s.runningPart,
		hypervolumeName: s.hypervolumePart,
		"spent":         s.spentPart,
		"miniature":     s.miniaturePart,
	}
}

// Names that several parts of the room share.
const (
	stateName       = "state"
	hypervolumeName = "hypervolume"
	frontName       = "front"
	runsName        = "runs"
)
