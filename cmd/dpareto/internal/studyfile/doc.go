// Package studyfile reads studies from YAML and JSON files.
//
// The fields of a file are those of the message dpareto.v1.Study, plus study_id, the id
// under which the study is created. It follows protobuf's JSON mapping, with three
// conveniences: names of enum values may be written without their prefix and in lower
// case ("goal: minimize" for GOAL_MINIMIZE), numbers are taken where a string is
// expected ("train_rows: 40000"), and errors name the field by its path
// ("spec.parameters[1].scale"), or the line of a syntax error.
package studyfile
