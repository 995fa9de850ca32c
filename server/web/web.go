package web

import (
	"maps"
	"net/http"

	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/server/web/choose"
	"github.com/dpareto/dpareto/server/web/overview"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/trials"
)

// Options configures a Handler. The zero value is ready to use.
type Options = site.Options

// views are the views that belong to no room.
type views struct{ *site.Site }

// Handler returns the handler of the page, for all paths. It makes calls over conn, which must
// outlive it. The caller checks the Host header and refuses requests that other sites forge.
func Handler(conn grpc.ClientConnInterface, o Options) (http.Handler, error) {
	of, err := site.New(conn, o)
	if err != nil {
		return nil, err
	}
	s := views{of}
	routes := map[string]site.View{
		"GET /{$}":                       home,
		"GET /studies/{study}/report":    s.showReport,
		"GET /studies/{study}/statement": s.showStatement,
		"GET /about":                     s.about,
	}
	parts := make(map[string]site.Part)
	for _, room := range []struct {
		routes map[string]site.View
		parts  map[string]site.Part
	}{
		{overview.Routes(of), overview.Parts(of)},
		{choose.Routes(of), choose.Parts(of)},
		{trials.Routes(of), trials.Parts(of)},
	} {
		maps.Copy(routes, room.routes)
		maps.Copy(parts, room.parts)
	}
	return of.Handler(routes, parts), nil
}

// home leads to the studies.
func home(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, "/studies", http.StatusSeeOther)
	return nil
}
