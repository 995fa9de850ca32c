// Package operate holds the commands of those who run a server: backups and checks of its
// store, export and import of studies, tokens, and its health.
package operate
