// Package transfer moves studies between servers, and copies whole stores.
//
//   - export.go: ExportStudy, and how records leave and enter the store; backup.go: BackupStore
//   - import.go: ImportStudy; check.go, private.go, release.go: what is checked of imported studies
//     and trials, of what they spent, and of releases
package transfer
