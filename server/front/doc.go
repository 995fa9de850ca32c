// Package front reads off the front of a study: measured and posterior fronts, hypervolumes over
// time, predictions and recommendations.
//
// Files:
//
//   - results.go: what was measured, pooled by configuration; latest.go: models and fronts that
//     concurrent calls share; memory.go: what is kept from one call to the next
//   - front.go: GetFront; others.go: configurations beside a front; shape.go: contributions and knee;
//     hypervolumes.go: ListHypervolumes
//   - query.go: QueryFront; predict.go: PredictMetrics
//   - totals.go: studies, trials and hypervolumes for metrics
package front
