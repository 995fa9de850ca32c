package command

import "time"

// slowAfter is how long work goes on in silence.
const slowAfter = time.Second

// Working shows a label below the log of a terminal once work has taken a second. The function that it
// returns ends the work, and removes the label; it is to be called once.
func (e *Env) Working(label string) (done func()) {
	if !e.Console.IsTerminal() {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(slowAfter)
		defer timer.Stop()
		select {
		case <-end:
		case <-timer.C:
			bar := e.Console.Start(label, 0, "")
			defer bar.Finish()
			<-end
		}
	}()
	return func() {
		close(end)
		<-ended // so that the label is gone before the result is printed
	}
}
