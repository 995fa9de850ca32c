package choose

import "github.com/dpareto/dpareto/server/web/site"

// views are the views of this room.
type views struct{ *site.Site }

// Routes returns the views by the patterns of [net/http.ServeMux].
func Routes(of *site.Site) map[string]site.View {
	s := views{of}
	return map[string]site.View{
		"GET /studies/{study}/choose": s.showChoose,
		"GET /studies/{study}/why":    s.showWhy,
	}
}

// Parts returns the parts of the views by name.
func Parts(of *site.Site) map[string]site.Part {
	s := views{of}
	return map[string]site.Part{
		"chooser":    s.chooserPart,
		"choice":     s.choicePart,
		"importance": s.importancePart,
		"slices":     s.slicesPart,
		"contour":    s.contourPart,
		"fit":        s.fitPart,
		"gain":       s.gainPart,
	}
}
