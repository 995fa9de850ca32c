// Package studyfile reads studies from YAML and JSON files.
//
// A file has the fields of the message dpareto.v1.Study, plus study_id, the id under which
// the study is created, and ledgers, which are created before it unless they exist. It follows protobuf's JSON mapping, with some
// conveniences: names of enum values may be written without their prefix and in lower
// case ("goal: minimize" for GOAL_MINIMIZE), what YAML takes for a number or a date
// is kept as it is written where a string is expected ("train_rows: 40000", "categories: [3.9, 3.10]"), a parameter's condition may be written as "when" with
// the parent's plain values ("when: {optimizer: [adam, lamb]}"), the cost by its name
// ("cost: runs", "cost: checkpoint_parameter", or the id of a metric), and errors name
// the line and the path of a field ("line 7: spec.parameters[1].scale").
package studyfile
