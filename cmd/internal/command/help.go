package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
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
		var text bytes.Buffer
		out := cmd.OutOrStdout()
		cmd.SetOut(&text)
		show(cmd, args)
		cmd.SetOut(out)
		for _, topic := range topics {
			fmt.Fprintf(&text, "\nFlags of the %s, such as %s: see \"%s help %s\".\n", topic[0], topic[1], root.Name(), topic[0])
		}
		_, _ = io.WriteString(out, wrap(text.String(), width)) // there is no other place to report a failure
	})
}

// wrap fits a text into a width. Paragraphs are filled. Indented lines stay apart and continue below their last column,
// as do the lines of the text that continue them there. Command lines continue as a shell reads them.
func wrap(text string, width int) string {
	var out, paragraph []string
	var item string // an indented line, with those that continue it
	column := 0     // of item's text
	flush := func() {
		if len(paragraph) > 0 {
			out = append(out, fill(strings.Join(paragraph, " "), "", width)...)
			paragraph = nil
		}
		if item != "" {
			out = append(out, fill(item, strings.Repeat(" ", column), width)...)
			item = ""
		}
	}
	for line := range strings.SplitSeq(continuation.ReplaceAllString(text, " "), "\n") {
		content := strings.TrimLeft(line, " ")
		start := len(line) - len(content)
		switch {
		case start == 0 && line != "":
			if item != "" {
				flush()
			}
			paragraph = append(paragraph, line)
		case line == "" || strings.HasPrefix(content, "dpareto"):
			flush()
			if utf8.RuneCountInString(line) > width {
				out = append(out, breakCommand(line, width)...)
			} else {
				out = append(out, line)
			}
		case item != "" && start == column && column > 0:
			item += " " + content
		default:
			flush()
			item, column = line, start+2
			if at := gap.FindStringIndex(content); at != nil {
				column = start + utf8.RuneCountInString(content[:at[1]])
			}
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// continuation is where a command line continues on the next line.
var continuation = regexp.MustCompile(` \\\n *`)

// gap is the space between an entry, such as a flag, and its description.
var gap = regexp.MustCompile(`\S {2,}`)

// breakCommand breaks a command line before flags.
func breakCommand(command string, width int) []string {
	const end, before = ` \`, " --"
	parts := strings.Split(command, before)
	line := parts[0]
	var lines []string
	for _, part := range parts[1:] {
		next := line + before + part
		if utf8.RuneCountInString(next+end) > width {
			lines, next = append(lines, line+end), "     "+before+part
		}
		line = next
	}
	return append(lines, line)
}

// fill breaks a text into lines of a width, all but the first indented. It keeps the names of environment
// variables beside what says that they are some.
func fill(text, indent string, width int) []string {
	const env, kept = "(env ", "(env\u00a0"
	words := strings.Split(strings.ReplaceAll(text, env, kept), " ") // two spaces stay two
	var lines []string
	line := words[0]
	for _, word := range words[1:] {
		next := line + " " + word
		if utf8.RuneCountInString(next) > width && strings.TrimSpace(line) != "" {
			lines, next = append(lines, strings.TrimRight(line, " ")), indent+word
		}
		line = next
	}
	lines = append(lines, line)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], kept, env)
	}
	return lines
}
