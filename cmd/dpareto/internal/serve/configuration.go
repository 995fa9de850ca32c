package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/document"
)

// flagGroups are the flags of a command by topic, in the order of its help.
type flagGroups struct {
	names []string
	sets  map[string]*pflag.FlagSet
}

// of returns the flags of a topic.
func (g *flagGroups) of(topic string) *pflag.FlagSet {
	if g.sets == nil {
		g.sets = make(map[string]*pflag.FlagSet)
	}
	if g.sets[topic] == nil {
		g.names = append(g.names, topic)
		g.sets[topic] = pflag.NewFlagSet(topic, pflag.ContinueOnError)
	}
	return g.sets[topic]
}

// addTo gives a command the flags, each with its environment variable, and a help that
// shows them by topic.
func (g *flagGroups) addTo(cmd *cobra.Command) {
	for _, topic := range g.names {
		g.sets[topic].SortFlags = false
		cmd.Flags().AddFlagSet(g.sets[topic])
		g.sets[topic].VisitAll(func(flag *pflag.Flag) { command.FromEnvironment(cmd.Flags(), flag.Name) })
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		var text strings.Builder
		fmt.Fprintf(&text, "Usage:\n  %s\n", cmd.UseLine())
		if cmd.HasExample() {
			fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
		}
		for _, topic := range g.names {
			fmt.Fprintf(&text, "\n%s:\n%s", topic, g.sets[topic].FlagUsages())
		}
		fmt.Fprintf(&text, "\nGeneral:\n%s", cmd.InheritedFlags().FlagUsages())
		_, err := io.WriteString(cmd.OutOrStderr(), text.String())
		return err
	})
}

// notInConfiguration are the flags that a file of settings cannot set.
var notInConfiguration = []string{"config", "check-config", "create", "help", "supervised"}

// ReadConfiguration sets the flags that a YAML file sets, and neither the arguments nor
// the environment do. Its keys are the names of flags.
func ReadConfiguration(flags *pflag.FlagSet, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	settings, err := parseConfiguration(content)
	if err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	var unknown []error
	for name, values := range settings {
		flag := flags.Lookup(name)
		switch {
		case name == "create":
			unknown = append(unknown, errors.New("create cannot be in the file, because it is for the first start only; use --create or DPARETO_CREATE=true"))
			continue
		case flag == nil || slices.Contains(notInConfiguration, name):
			unknown = append(unknown, fmt.Errorf("unknown key %q; keys are the names of flags, see dpareto serve --help", name))
			continue
		case flag.Changed:
			continue
		}
		if _, isList := flag.Value.(pflag.SliceValue); len(values) != 1 && !isList {
			unknown = append(unknown, fmt.Errorf("%s: must be one value, is a list", name))
			continue
		}
		for _, value := range values {
			if err := command.SetFlag(flags, name, value); err != nil {
				unknown = append(unknown, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	slices.SortFunc(unknown, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := errors.Join(unknown...); err != nil {
		return command.Usagef("config %s: %w", path, err)
	}
	return nil
}

// parseConfiguration returns the values in a file of settings, by name: a list for a list,
// else one.
func parseConfiguration(content []byte) (map[string][]string, error) {
	parsed, err := document.Parse(content)
	if err != nil {
		return nil, err
	}
	raw, ok := parsed.Root.(map[string]any)
	if !ok && parsed.Root != nil {
		return nil, errors.New("must be a mapping of flags to values")
	}
	settings := make(map[string][]string, len(raw))
	for name, value := range raw {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		settings[name] = []string{}
		for _, v := range list {
			switch v := v.(type) {
			case string, bool, json.Number:
				settings[name] = append(settings[name], fmt.Sprint(v))
			default:
				return nil, fmt.Errorf("line %d: %s: must be a text, a number, true or false, or a list of these", parsed.Line(name), name)
			}
		}
	}
	return settings, nil
}

// writeConfiguration writes the flags as a file that ReadConfiguration reads.
func writeConfiguration(out io.Writer, flags *pflag.FlagSet) error {
	settings := make(map[string]any)
	flags.VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(notInConfiguration, flag.Name) {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			settings[flag.Name] = append([]string{}, list.GetSlice()...) // [], not null
			return
		}
		settings[flag.Name] = flag.Value.String()
	})
	content, err := yaml.Marshal(settings)
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}
