package command

import (
	"os"

	"github.com/dpareto/dpareto/server/filemode"
)

// WarnIfReadable warns, with advice, if a secret is about to be written to a standard output that is a
// file which other users can read.
func (e *Env) WarnIfReadable(secret, advice string) {
	file, ok := e.Stdout.(*os.File)
	if !ok {
		return
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && filemode.Exceeds(info, 0) {
		e.Sayf("warning: other users can read the file that %s goes to (mode %04o): chmod 600 it, or %s\n", secret, info.Mode().Perm(), advice)
	}
}
