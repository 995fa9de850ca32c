// Package privacytest helps to test mechanisms against their claims: an [Audit] plays
// the attacker, who runs a mechanism many times on each of two neighbouring data sets.
// It imports nothing of the module, so that every package's tests can use it.
package privacytest
