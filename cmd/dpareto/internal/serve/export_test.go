package serve

import "time"

// SetPause replaces the pause of a server that stops, until restore is called.
func SetPause(replacement func(time.Duration)) (restore func()) {
	before := pause
	pause = replacement
	return func() { pause = before }
}
