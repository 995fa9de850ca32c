package command

import "github.com/dpareto/dpareto/cmd/internal/console"

// Download shows the progress of a download, from its first byte on.
type Download struct {
	console  *console.Console
	label    string
	progress *console.Progress
}

// Download returns the progress of a download that may follow.
func (e *Env) Download(label string) *Download {
	return &Download{console: e.Console, label: label}
}

// Set shows the number of bytes done, of a total that is negative if it is not known.
func (d *Download) Set(done, total int64) {
	const kilobyte = 1000
	if d.progress == nil {
		d.progress = d.console.Start(d.label, max(0, total/kilobyte), "kB")
	}
	d.progress.Set(done/kilobyte, "")
}

// Finish takes the progress away.
func (d *Download) Finish() { d.progress.Finish() }
