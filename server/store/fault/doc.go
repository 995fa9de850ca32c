// Package fault makes stores fail, for tests: a [KV] around another that fails as it is
// told, and functions that damage files.
package fault
