// Package site is the frame that the views of the page share: calls on behalf of the reader, signing
// in, headers, templates, scripts and styles, failed requests, forms, and the parts of views, alone
// or as a stream.
//
//   - site.go: the clients, the routes that belong to no view, and the headers; session.go: signing
//     in and out; errors.go: failed requests; assets.go: scripts and styles
//   - page.go: what the frame shows; render.go: templates and what they call; form.go: forms
//   - parts.go: the parts of views, by URL; live.go: parts sent again when the study changes
//
// templates has a file for each view, and in parts-*.html the parts of one; a template finds what it
// calls in render.go.
package site
