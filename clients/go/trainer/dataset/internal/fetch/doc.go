// Package fetch downloads files with known digests into a folder. An interrupted download
// continues where it stopped, in this process or a later one. A file appears under its
// name only when it is complete and its digest is right. If several processes want the
// same file, one downloads it.
package fetch
