// Package page gathers the pages of lists, and makes their tokens. A token is bound to the list,
// filter and order that it was made for.
package page
