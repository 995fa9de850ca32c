// Package pagination implements pagination of lists. A page token is bound to the list,
// filter and order that it was made for.
package pagination
