// Package resource makes and parses resource names ("studies/{study}/trials/{number}"), and
// has the errors of resources that do not exist.
package resource
