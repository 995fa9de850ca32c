// Package openapi holds the OpenAPI document of the contract, as JSON over HTTP.
package openapi

import (
	_ "embed"
	"strings"
)

//go:embed dpareto.swagger.json
var generated string

// Document returns the document, in the format OpenAPI 2.0.
func Document() []byte {
	// The generator makes singulars by taking an s away.
	return []byte(strings.NewReplacer(`{studie}`, `{study}`, `"name": "studie"`, `"name": "study"`).Replace(generated))
}
