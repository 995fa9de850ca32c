// Package accounting gives privacy specs their meaning: it compiles a PrivacySpec,
// whose fields are expressions, to a [Function] that builds the mechanism for a set of
// values and has package privacy account it, and it converts guarantees to messages.
//
// [Service] answers the calls of PrivacyService that need no study. It has no state, so
// that it also serves programs without a server.
package accounting
