package command

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// The formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

func (e *Env) addLogFlags(flags *pflag.FlagSet) {
	flags.TextVar(&e.logLevel, "log-level", slog.LevelInfo, "lowest level that is logged: debug, info, warn or error")
	flags.StringVar(&e.logFormat, "log-format", logText, "format of the log: "+logText+" or "+logJSON)
	FromEnvironment(flags, "log-level", "log-format")
}

// OpenLog sets the logger as the flags say. A command that changes the flags of the log
// itself calls it again.
func (e *Env) OpenLog() (err error) {
	e.Logger, err = newLogger(e.Console, e.logFormat, e.logLevel)
	return err
}

// newLogger returns a logger of records of at least a level.
func newLogger(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case logText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	case logJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, Usagef("log-format: must be %s or %s, is %q", logText, logJSON, format)
	}
}
