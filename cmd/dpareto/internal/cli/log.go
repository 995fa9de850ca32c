package cli

import (
	"fmt"
	"io"
	"log/slog"
)

// The forms of the log.
const (
	logText = "text"
	logJSON = "json"
)

// openLog sets the logger to what the flags say.
func (a *app) openLog() (err error) {
	a.logger, err = newLogger(a.console, a.logFormat, a.logLevel)
	return err
}

// newLogger returns a logger that writes records of at least a level in a form.
func newLogger(w io.Writer, form string, level slog.Level) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch form {
	case logText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	case logJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, &usageError{fmt.Errorf("log-format: %q is neither %s nor %s", form, logText, logJSON)}
	}
}
