// Package mechanism reads private mechanisms from flags: --mechanism dp-sgd
// --batch-size 128 and so on become a PrivacySpec.
package mechanism
