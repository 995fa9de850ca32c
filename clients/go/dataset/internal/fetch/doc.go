// Package fetch downloads files that are known to the last byte into a folder. A
// download that breaks off goes on where it stopped, in this process or a later one; a
// file appears under its name only when it is complete and its digest is right; and of
// several processes that want the same file one downloads it.
package fetch
