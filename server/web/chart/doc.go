// Package chart draws pictures as SVG for a web page: points that can be reached by the keyboard,
// lines with bands, staircases and maps, on linear, logarithmic, logit and category axes.
//
// A chart has no colours, fonts or scripts: its elements have classes, which the page's style sheet
// dresses for light, dark and print. It holds only text that is escaped, and presentation
// attributes, so that a strict Content-Security-Policy allows it.
package chart
