package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/document"
)

// contexts are the servers that a user has named, as they are in the file.
type contexts struct {
	// Current is the name of the context that counts without --context, or "".
	Current string `json:"current,omitempty"`
	// Contexts are the values of the flags of the connection, by the names of the contexts and the flags.
	Contexts map[string]map[string]string `json:"contexts"`
}

// contextsPath returns the path of the file of the contexts, in the user's folder of settings.
func contextsPath() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("contexts: %w", err)
	}
	return filepath.Join(folder, "dpareto", "contexts.yaml"), nil
}

// readContexts returns the contexts of the user. There are none without a file, or a home to look for it.
func readContexts() (*contexts, error) {
	all := new(contexts)
	path, err := contextsPath()
	if err != nil {
		return all, nil //nolint:nilerr // see above
	}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := document.UnmarshalTexts(content, all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// changeContexts changes the file of the contexts, which only the user can read.
func changeContexts(change func(*contexts) error) error {
	all, err := readContexts()
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	path, err := contextsPath()
	if err != nil {
		return err
	}
	content, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".contexts-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// find returns the context with a name.
func (c *contexts) find(name string) (map[string]string, error) {
	settings, ok := c.Contexts[name]
	if !ok {
		known := "there are none; see dpareto context add --help"
		if len(c.Contexts) > 0 {
			known = "must be one of " + strings.Join(slices.Sorted(maps.Keys(c.Contexts)), ", ")
		}
		return nil, command.Usagef("context: %s, is %q", known, name)
	}
	return settings, nil
}

// applyContext sets the flags that are not given as a context says: the one that is named, or the
// current one unless a server is named. An argument counts more than the environment. A token of a
// context goes to no other server.
func (c *flags) applyContext(set *pflag.FlagSet) error {
	server, context := set.Lookup(serverFlag), set.Lookup(contextFlag)
	switch {
	case server.Changed && c.context != "" && command.IsArgument(server) == command.IsArgument(context):
		return command.Usagef("name a server or a context, but not both: %s is %q, %s %q", serverFlag, c.address, contextFlag, c.context)
	case server.Changed && (c.context == "" || command.IsArgument(server)):
		return nil
	}
	all, err := readContexts()
	if err != nil {
		return err
	}
	name := c.context
	if name == "" {
		name = all.Current
	}
	if name == "" {
		return nil
	}
	settings, err := all.find(name)
	if err != nil {
		return err
	}
	for flag, value := range settings {
		isToken := flag == tokenFileFlag && os.Getenv(TokenVariable) != ""
		if isToken || set.Changed(flag) && flag != serverFlag {
			continue
		}
		if set.Lookup(flag) == nil {
			return fmt.Errorf("context %s: there is no flag --%s", name, flag)
		}
		if err := command.SetFlag(set, flag, value); err != nil {
			return fmt.Errorf("context %s: %s: %w", name, flag, err)
		}
	}
	return nil
}

// ContextCommand returns the command context.
func ContextCommand(env *command.Env) *cobra.Command {
	return command.Group("context", "Name servers, and choose the one that commands call",
		`A context is a server under a name: its address, and how to reach it. It is kept in
dpareto/contexts.yaml in the user's folder of settings (on Linux ~/.config), which names the files of
tokens and keys, and holds none.

Commands call the server of --context (env DPARETO_CONTEXT), or of the context in use. Given flags and
environment variables count more, except that --server stands alone: a token of a context goes to the
server of that context only.`,
		addContextCommand(env), useContextCommand(env), listContextsCommand(env), removeContextCommand(env))
}

func addContextCommand(env *command.Env) *cobra.Command {
	var connection flags
	own := connection.connection()
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a context, or change it",
		Long:  "Keeps the flags of a connection under a name. The first context is in use from then on.",
		Example: `  dpareto context add lab --server dpareto.example.org:8321 --tls-ca ca.crt --token-file me.token
  dpareto study list --context lab`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if name == "" || strings.TrimSpace(name) != name {
				return command.Usagef("name: must be a word, is %q", name)
			}
			if !cmd.Flags().Changed(serverFlag) {
				return command.Usagef("name the server of the context with --%s", serverFlag)
			}
			settings := make(map[string]string)
			var failed error
			own.VisitAll(func(flag *pflag.Flag) {
				if !flag.Changed {
					return
				}
				value := flag.Value.String()
				if isFile[flag.Name] {
					var err error
					value, err = filepath.Abs(value)
					failed = errors.Join(failed, err)
				}
				settings[flag.Name] = value
			})
			if failed != nil {
				return failed
			}
			return changeContexts(func(all *contexts) error {
				if all.Contexts == nil {
					all.Contexts = make(map[string]map[string]string)
				}
				if len(all.Contexts) == 0 {
					all.Current = name
				}
				all.Contexts[name] = settings
				env.Logger.Info("added", "context", name, "in_use", all.Current == name)
				return nil
			})
		},
	}
	cmd.Flags().AddFlagSet(own)
	return cmd
}

// isFile says which flags name files: they are kept as absolute paths.
var isFile = map[string]bool{"tls-ca": true, "client-cert": true, "client-key": true, tokenFileFlag: true}

func useContextCommand(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "use NAME",
		Short:   "Choose the context that commands use",
		Long:    `Chooses the context that commands use without --context. The name "" chooses none.`,
		Example: "  dpareto context use lab",
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(func(all *contexts) error {
				if args[0] != "" {
					if _, err := all.find(args[0]); err != nil {
						return err
					}
				}
				all.Current = args[0]
				env.Logger.Info("in use", "context", args[0])
				return nil
			})
		},
	}
}

func removeContextCommand(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a context",
		Example: "  dpareto context remove lab",
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(func(all *contexts) error {
				if _, err := all.find(args[0]); err != nil {
					return err
				}
				delete(all.Contexts, args[0])
				if all.Current == args[0] {
					all.Current = ""
				}
				env.Logger.Info("removed", "context", args[0])
				return nil
			})
		},
	}
}

func listContextsCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the contexts",
		Example: "  dpareto context list --output json",
		Args:    command.Args(command.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			table := &output.Table{Columns: []string{"context", "in_use", serverFlag, "settings"}}
			for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
				settings := all.Contexts[name]
				var others []string
				for _, flag := range slices.Sorted(maps.Keys(settings)) {
					if flag != serverFlag {
						others = append(others, flag+"="+settings[flag])
					}
				}
				inUse := "no"
				if name == all.Current {
					inUse = "yes"
				}
				table.Rows = append(table.Rows, []any{name, inUse, settings[serverFlag], strings.Join(others, " ")})
			}
			return out.Table(table)
		},
	}
	out.AddFlag(cmd)
	return cmd
}

// ContextNames returns the names of the contexts of the user.
func ContextNames() ([]string, error) {
	all, err := readContexts()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(all.Contexts)), nil
}
