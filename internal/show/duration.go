package show

import (
	"strconv"
	"time"
)

// Duration returns a duration for people, rounded to its two largest units: "30 days", "1 hour 20 minutes".
func Duration(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	for i, large := range units {
		last := i == len(units)-1
		small := large
		if !last {
			small = units[i+1]
		}
		rounded := d.Round(small.size)
		if rounded < large.size && !last {
			continue
		}
		text := Count(int64(rounded/large.size), large.name)
		if rest := rounded % large.size; rest > 0 {
			text += " " + Count(int64(rest/small.size), small.name)
		}
		return text
	}
	return ""
}

// Count returns a number of things: 1 run, 2 runs.
func Count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}
