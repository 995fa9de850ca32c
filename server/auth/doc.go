// Package auth identifies the callers of a server and their permissions.
//
// A file lists credentials: bearer tokens, of which it keeps only hashes, and client
// certificates, by their subject or a subject alternative name. Each has a name, a role
// on the whole server and grants on studies whose ids match a pattern. An [Authenticator]
// turns a caller's credential into a [Principal]; [Principal.Authorize] decides by the
// rules that each method has in the contract ([Lookup]).
//
// A token is 256 random bits and cannot be guessed, so one SHA-256 suffices. Slow, salted hashes
// protect passwords, which can be guessed, and would cost every call.
//
// The decision depends on the name of a study alone and comes before the store is asked:
// a caller without rights on a study does not learn whether it exists.
package auth
