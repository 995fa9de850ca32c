// Package overview is the room of studies: their list (studies.go), one study with its front and its
// progress (study.go, front.go, draw.go, progress.go), and the fronts of several studies (compare.go).
package overview
