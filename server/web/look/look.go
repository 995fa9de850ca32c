// Package look is the style sheet that the page and reports share.
package look

import _ "embed"

// CSS is the style sheet.
//
//go:embed page.css
var CSS string
