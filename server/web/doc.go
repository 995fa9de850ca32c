// Package web is the page of the server: studies, their fronts as they grow, what an ε means and
// which configuration reaches it. People look at it in a browser; everything that it shows comes
// from the contract, called with the reader's own token, so that it can show nothing that the
// reader may not read.
//
// Files:
//
//   - web.go: the handler, its routes and its headers; session.go: signing in and out;
//     errors.go: failed requests; assets.go: scripts and styles
//   - render.go: templates and what they call; parts.go: the parts of views, by URL or live;
//     live.go: parts sent again when the study changes
//   - front.go, draw.go: fronts and their pictures; progress.go: the other parts of the view of a
//     study; words.go: metrics, domains and budgets as people read them
//   - studies.go, study.go, ...: one file for each view, with a template of the same name in
//     templates; actions.go and queue.go: what forms and buttons do
//   - report: the report of a study as one file, which the command line writes, too
//   - chart: pictures as SVG
//
// Every view works without scripts. With them (static/page.js and three small libraries, see
// static/NOTICES.txt) parts of it stay up to date by server-sent events.
package web
