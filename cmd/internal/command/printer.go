package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// Printer prints the data of a command in the format that its flag says.
type Printer struct {
	io.Writer

	Format output.Format
	width  int
}

// Width returns the width of the terminal that shows what is printed, 0 if none does.
func (p *Printer) Width() int { return p.width }

// NewPrinter returns a printer to standard output.
func NewPrinter(env *Env) *Printer { return &Printer{Writer: env.Stdout, width: env.Width()} }

// AddFlag adds the flag of the format.
func (p *Printer) AddFlag(cmd *cobra.Command) { OutputFlag(cmd, &p.Format) }

// Table prints a table.
func (p *Printer) Table(table *output.Table) error { return table.Write(p, p.Format) }

// Heading prints lines for people, and an empty one. Other formats have no heading.
func (p *Printer) Heading(lines []string) error {
	if p.Format != output.Text {
		return nil
	}
	for _, line := range append(lines, "") {
		if _, err := fmt.Fprintln(p, line); err != nil {
			return err
		}
	}
	return nil
}
