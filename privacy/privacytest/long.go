//go:build long

package privacytest

// Long says that tests take all of their settings.
const Long = true
