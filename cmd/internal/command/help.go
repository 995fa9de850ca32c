package command

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

const (
	// helpWidth is the width of help that no terminal shows.
	helpWidth = 80
	// topicKey marks flags that a page of the help explains, in place of every command that has them.
	topicKey = "dpareto_help_topic"
)

// InTopic has the page of a topic explain flags. The help of commands that have them names the page and
// an example.
func InTopic(topic, example string, flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = make(map[string][]string)
		}
		flag.Annotations[topicKey] = []string{topic, example}
	})
}

// Width returns the width of the terminal that shows standard output, in characters; 0 if none does.
func (e *Env) Width() int {
	file, ok := e.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// HelpWidth returns the width of help on standard output.
func (e *Env) HelpWidth() int { return cmp.Or(e.Width(), helpWidth) }

// fitHelp makes the help of all commands fit into a width. Flags of a topic are left to its page.
func fitHelp(root *cobra.Command, width int) {
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d", width)
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", "(.LocalFlags"+wrapped+")", ".InheritedFlags.FlagUsages", "(.InheritedFlags"+wrapped+")",
	).Replace(root.UsageTemplate()))
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var topics [][]string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if topic := flag.Annotations[topicKey]; topic != nil {
				flag.Hidden = true
				if !slices.ContainsFunc(topics, func(known []string) bool { return known[0] == topic[0] }) {
					topics = append(topics, topic)
				}
			}
		})
		cmd.Long = wrap(cmd.Long, width)
		show(cmd, args)
		for _, topic := range topics {
			text := fmt.Sprintf("Flags of the %s, such as %s: see \"%s help %s\".", topic[0], topic[1], root.Name(), topic[0])
			cmd.Printf("\n%s\n", wrap(text, width))
		}
	})
}

// wrap fits a text into a width. Paragraphs are filled; indented lines stay apart, and continue further
// to the right.
func wrap(text string, width int) string {
	var out, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			out = append(out, fill(strings.Join(paragraph, " "), "", width)...)
			paragraph = nil
		}
	}
	for _, line := range strings.Split(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		switch {
		case line == "":
			flush()
			out = append(out, "")
		case indent != "":
			flush()
			if utf8.RuneCountInString(line) <= width {
				out = append(out, line)
			} else {
				out = append(out, fill(line[len(indent):], indent, width)...)
			}
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// fill breaks a text into lines of at most a width, all indented, and all but the first a little more.
func fill(text, indent string, width int) []string {
	var lines []string
	line, before := indent, ""
	for _, word := range strings.Split(text, " ") { // two spaces stay two
		if before != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line, before = indent, ""
			if indent != "" {
				line += "  "
			}
		}
		line += before + word
		before = " "
	}
	return append(lines, line)
}
