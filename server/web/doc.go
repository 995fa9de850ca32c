// Package web is the page of the server: studies, their fronts as they grow, the meaning of an ε
// and which configuration reaches it. People look at it in a browser; everything that it shows
// comes from the contract, called with the reader's own token, so that it can show nothing that
// the reader may not read.
//
// Every view is in the room of its subject, with a file and a template of one name:
//
//   - overview: the list of studies, one study with its front and its progress, the fronts of
//     several studies, and ledgers
//   - choose: the choice of a point of the front, and the model's explanations
//   - trials: trials, and what forms and buttons do
//   - web itself: the report and /about
//
// The rooms stand on
//
//   - site: the frame that views share, with all templates, scripts and styles
//   - words: metrics, parameters, guarantees and budgets as people read them
//   - look: the style sheet, which reports also have
//   - chart: pictures as SVG
//   - report: the report of a study as one file, which the command line also writes
//   - statement: one ε as a page to sign, which the command line writes
//   - choose/snippet: configurations to copy
//
// Tests start a server with its page by webtest.
//
// Every view works without scripts. With them (site/static/page.js and two small libraries, see
// site/static/NOTICES.txt) parts of it stay up to date by server-sent events.
package web
