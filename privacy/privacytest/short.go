//go:build !long

package privacytest

// Long says that tests take all of their settings, which the build tag "long" asks for.
const Long = false
