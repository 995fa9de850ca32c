// Package query asks a model for a configuration: which has the best value of one objective
// among those that meet bounds on others? See [Query.Search].
package query
