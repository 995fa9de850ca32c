// Package attachment checks and changes what programs keep with a trial: attributes and artifacts.
package attachment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
)

// Limits on the attributes and artifacts of a trial; sizes are in bytes.
const (
	maxAttributes     = 64
	maxAttributeBytes = 10_000
	maxKey            = 63
	// maxDepth bounds lists and structs within another: some clients parse messages of at most 100
	// levels, of which each takes up to three.
	maxDepth     = 16
	maxArtifacts = 64
	maxURI       = 2_000
	// maxChanges is the number of artifacts in a request that can replace all by others.
	maxChanges = 2 * maxArtifacts
)

// digest matches a SHA-256 in hexadecimal digits.
var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Check adds violations by the attributes and artifacts of a trial at a path ("trial") to fields.
func Check(path string, trial *dparetov1.Trial, fields *invalid.Fields) {
	checkAttributes(path+".attributes", trial.GetAttributes(), fields)
	checkArtifacts(path+".artifacts", trial.GetArtifacts(), fields)
}

// CheckNone adds a violation for each of attributes and artifacts that a trial has.
func CheckNone(path string, trial *dparetov1.Trial, fields *invalid.Fields) {
	const reason = "must be empty: they may tell results, and no guarantee of private_mode or random_stopping covers them"
	if len(trial.GetAttributes()) > 0 {
		fields.Addf(path+".attributes", reason)
	}
	if len(trial.GetArtifacts()) > 0 {
		fields.Addf(path+".artifacts", reason)
	}
}

func checkAttributes(field string, attributes map[string]*structpb.Value, fields *invalid.Fields) {
	if n := len(attributes); n > maxAttributes {
		fields.Addf(field, "must hold at most %d keys, holds %d", maxAttributes, n)
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		element := fmt.Sprintf("%s[%.63q]", field, key)
		if n := len(key); n < 1 || n > maxKey {
			fields.Addf(element, "must have a key of 1 to %d bytes, has %d", maxKey, n)
		} else if reason := invalid.Hidden(key); reason != "" {
			fields.Addf(element, "the key %s", reason)
		}
		if reason := unstorable(attributes[key], maxDepth); reason != "" {
			fields.Addf(element, "%s", reason)
			continue
		}
		encoded, err := JSON(attributes[key])
		if err != nil {
			fields.Addf(element, "cannot be written as JSON: %v", err)
		}
		size += len(encoded)
	}
	if size > maxAttributeBytes {
		fields.Addf(field, "must have values of at most %d bytes in all, as JSON, has %d", maxAttributeBytes, size)
	}
}

// unstorable returns why a value, in which lists and structs may be nested to a depth, is refused, or
// "".
func unstorable(value *structpb.Value, depth int) string {
	var parts []*structpb.Value
	switch kind := value.GetKind().(type) {
	case nil:
		return "must have a value; null removes the key"
	case *structpb.Value_NumberValue:
		if x := kind.NumberValue; math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprintf("must be finite, is %g: JSON has no such number", x)
		}
		return ""
	case *structpb.Value_ListValue:
		parts = kind.ListValue.GetValues()
	case *structpb.Value_StructValue:
		parts = slices.Collect(maps.Values(kind.StructValue.GetFields()))
	default:
		return ""
	}
	if depth == 0 {
		return fmt.Sprintf("must have at most %d lists and objects inside each other", maxDepth)
	}
	for _, part := range parts {
		if reason := unstorable(part, depth-1); reason != "" {
			return reason
		}
	}
	return ""
}

// JSON returns a value as JSON without spaces, objects in ascending order of their keys.
func JSON(value *structpb.Value) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value.AsInterface())
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

func checkArtifacts(field string, artifacts []*dparetov1.Artifact, fields *invalid.Fields) {
	if n := len(artifacts); n > maxArtifacts {
		fields.Addf(field, "must hold at most %d, holds %d", maxArtifacts, n)
		return
	}
	seen := make(map[string]bool)
	for i, a := range artifacts {
		element := fmt.Sprintf("%s[%d]", field, i)
		fields.CheckID(element+".id", a.GetId(), maxKey)
		if seen[a.GetId()] {
			fields.Addf(element+".id", "%.63q is also the id of another artifact", a.GetId())
		}
		seen[a.GetId()] = true
		checkURI(element+".uri", a.GetUri(), fields)
		if sum := a.GetSha256(); sum != "" && !digest.MatchString(sum) {
			fields.Addf(element+".sha256", "must be 64 lower-case hexadecimal digits, is %.100q", sum)
		}
	}
}

// authority matches the scheme of a URI and what precedes an @ in its authority.
var authority = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):[/\\]{2,}([^/\\?#]*)@`)

// script matches a URI that a browser runs or shows as a page of its own.
var script = regexp.MustCompile(`(?i)^(javascript|vbscript|data):`)

// checkURI adds a violation by where an artifact is. Viewers of the study see it, so it must not hold a
// password. A user's name alone can be part of the place, as in abfss://container@account.
func checkURI(field, uri string, fields *invalid.Fields) {
	if n := len(uri); n < 1 || n > maxURI {
		fields.Addf(field, "must have 1 to %d bytes, has %d", maxURI, n)
		return
	}
	if reason := invalid.Hidden(uri); reason != "" {
		fields.Addf(field, "%s", reason)
	}
	if script.MatchString(uri) {
		fields.Addf(field, "must be the location of the artifact: javascript, vbscript and data are not allowed")
	}
	if parts := authority.FindStringSubmatch(uri); parts != nil {
		isWeb := strings.EqualFold(parts[1], "http") || strings.EqualFold(parts[1], "https")
		if isWeb || strings.Contains(parts[2], ":") {
			fields.Addf(field, "must not hold a password or, with http and https, a user") // not the value
		}
	}
}

// Attributes returns attributes with changes applied: each key gets its new value, or is removed
// where that is null.
func Attributes(attributes, changes map[string]*structpb.Value) map[string]*structpb.Value {
	out := make(map[string]*structpb.Value, len(attributes)+len(changes))
	maps.Copy(out, attributes)
	for key, value := range changes {
		if _, isNull := value.GetKind().(*structpb.Value_NullValue); isNull {
			delete(out, key)
		} else {
			out[key] = value
		}
	}
	return out
}

// Artifacts returns artifacts with changes applied in their order: each replaces the artifact with its
// id, or comes last if there is none. One that has nothing but an id removes that artifact. More than
// maxChanges are not applied but added, for Check to refuse: applying them takes time.
func Artifacts(artifacts, changes []*dparetov1.Artifact) []*dparetov1.Artifact {
	if len(changes) > maxChanges {
		return slices.Concat(artifacts, changes)
	}
	out := slices.Clone(artifacts)
	for _, change := range changes {
		i := slices.IndexFunc(out, func(a *dparetov1.Artifact) bool { return a.GetId() == change.GetId() })
		removes := change.GetId() != "" && change.GetUri() == "" && change.GetSha256() == ""
		switch {
		case removes && i >= 0:
			out = slices.Delete(out, i, i+1)
		case removes: // already gone
		case i >= 0:
			out[i] = change
		default:
			out = append(out, change)
		}
	}
	return out
}
