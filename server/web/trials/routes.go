package trials

import "github.com/dpareto/dpareto/server/web/site"

// views are the views of this room.
type views struct{ *site.Site }

// Routes returns the views by the patterns of [net/http.ServeMux].
func Routes(of *site.Site) map[string]site.View {
	s := views{of}
	return map[string]site.View{
		"GET /studies/{study}/trials":                 s.showTrials,
		"GET /studies/{study}/trials/compare":         s.compareTrials,
		"GET /studies/{study}/trials/{trial}":         s.showTrial,
		"POST /studies/{study}/trials/{trial}/stop":   s.stopTrial,
		"POST /studies/{study}/trials/{trial}/labels": s.labelTrial,
		"GET /studies/{study}/trials/export/{file}":   s.exportTrials,
		"POST /studies/{study}/pause":                 s.pause,
		"POST /studies/{study}/resume":                s.resume,
		"GET /studies/{study}/edit":                   s.editStudy,
		"POST /studies/{study}/edit":                  s.saveDetails,
		"POST /studies/{study}/budget":                s.saveBudget,
		"GET /studies/{study}/queue":                  s.queueForm,
		"POST /studies/{study}/queue":                 s.queue,
	}
}

// Parts returns the parts of the views by name.
func Parts(of *site.Site) map[string]site.Part {
	s := views{of}
	return map[string]site.Part{
		"trials-table": s.trialsPart,
		"trials-news":  s.trialsNewsPart,
		"trial-detail": s.trialPart,
	}
}
