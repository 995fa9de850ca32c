package operate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/auth"
)

// authFileFlag names the file of the credentials of a server.
const authFileFlag = "auth-file"

// TokenCommand returns the command token.
func TokenCommand(env *command.Env) *cobra.Command {
	return command.Group("token", "Create, list and revoke the tokens of a server",
		`A token lets its owner call a server that was started with --auth-file. The file is on
the server's machine and keeps only hashes: a token is shown once, when it is created. A
running server notices changes of the file within about a second.`,
		createTokenCommand(env), listTokensCommand(env), revokeTokenCommand(env))
}

// addAuthFileFlag adds the flag of commands that work on the file.
func addAuthFileFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, authFileFlag, "", "the server's file of credentials")
	command.FromEnvironment(cmd.Flags(), authFileFlag)
}

// needAuthFile refuses a command without the flag.
func needAuthFile(path string) error {
	if path == "" {
		return command.Usage(errors.New("name the file with --" + authFileFlag))
	}
	return nil
}

func createTokenCommand(env *command.Env) *cobra.Command {
	var path, name, role, file string
	var studies []string
	var metrics bool
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long: `Creates a token and prints it, once. The file is made if it does not exist.

The role viewer reads; worker also asks for trials and reports; admin does everything. With
--study the role holds for the studies whose ids match one of the patterns, where "*" matches
any characters; without it, for the whole server.

With --metrics the token also reads /metrics, which no role but admin on the whole server
includes. Metrics count the calls about all studies, also where the number of trials is
secret. Such a token needs no role.

To replace a token, create another of the same name, hand it out, and revoke the old one
by its id.`,
		Example: `  dpareto token create --name adult-workers --role worker --study 'adult-*' --auth-file auth.yaml
  dpareto token create --name ci --role viewer --expires 720h --file ci.token --auth-file auth.yaml
  dpareto token create --name prometheus --metrics --auth-file auth.yaml`,
		Args: command.Args(command.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if err := needAuthFile(path); err != nil {
				return err
			}
			c, err := newCredential(name, role, studies, metrics, expires, time.Now())
			if err != nil {
				return command.Usage(err)
			}
			if file != "" {
				return createTokenFile(env, path, file, c)
			}
			return createToken(env, path, "it is shown only now:", c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "name of the token's owner, for logs; several tokens may share a name")
	flags.StringVar(&role, "role", "", strings.Join(auth.Roles(), ", "))
	flags.StringArrayVar(&studies, "study", nil, "pattern of the ids of the studies that the token is for; can be given several times; default everything")
	flags.BoolVar(&metrics, "metrics", false, "the token reads the server's metrics; then the role is optional")
	flags.DurationVar(&expires, "expires", 0, "time after which the token is not valid any more; default never")
	flags.StringVar(&file, "file", "", "new file for the token, which only you can read; default standard output")
	addAuthFileFlag(cmd, &path)
	return cmd
}

// newCredential returns the credential that the arguments describe.
func newCredential(name, role string, studies []string, metrics bool, expires time.Duration, now time.Time) (auth.Credential, error) {
	var r auth.Role
	isOptional := metrics && len(studies) == 0
	if err := r.UnmarshalText([]byte(role)); (role != "" || !isOptional) && (err != nil || r == auth.None) {
		return auth.Credential{}, fmt.Errorf("role: must be one of %s, is %q", strings.Join(auth.Roles(), ", "), role)
	}
	now = now.UTC().Truncate(time.Second)
	c := auth.Credential{Name: name, Metrics: metrics, CreateTime: &now}
	if len(studies) == 0 {
		c.Role = r
	}
	for _, pattern := range studies {
		c.Grants = append(c.Grants, auth.Grant{Studies: pattern, Role: r})
	}
	switch {
	case expires < 0:
		return auth.Credential{}, fmt.Errorf("expires: must be positive, is %v", expires)
	case expires > 0:
		c.ExpireTime = new(now.Add(expires))
	}
	return c, nil
}

// createToken prints a new token, and says where.
func createToken(env *command.Env, path, where string, c auth.Credential) error {
	made, token, err := auth.NewToken(c)
	if err != nil {
		return command.Usage(err)
	}
	err = auth.Change(path, func(all []*auth.Credential) ([]*auth.Credential, error) { return append(all, made), nil })
	if err != nil {
		return err
	}
	env.Sayf("token %s of %s; %s\n", made.ID, made.Name, where)
	env.WarnIfReadable("the token", "give --file, which makes a file of mode 0600")
	_, err = fmt.Fprintln(env.Stdout, token)
	return err
}

// createTokenFile is createToken to a new file that only its owner can read.
func createTokenFile(env *command.Env, path, file string, c auth.Credential) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil { // before the token exists
		return err
	}
	toFile := *env
	toFile.Stdout = out
	if err := errors.Join(createToken(&toFile, path, "it is in "+file, c), out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

func listTokensCommand(env *command.Env) *cobra.Command {
	var path string
	out := command.NewPrinter(env)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the credentials of a server",
		Example: "  dpareto token list --auth-file auth.yaml",
		Args:    command.Args(command.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if err := needAuthFile(path); err != nil {
				return err
			}
			credentials, err := auth.Read(path)
			if err != nil {
				return err
			}
			if out.Format == output.JSON {
				return printCredentials(out, credentials)
			}
			return out.Table(credentialTable(credentials, time.Now()))
		},
	}
	addAuthFileFlag(cmd, &path)
	out.AddFlag(cmd)
	return cmd
}

func credentialTable(credentials []*auth.Credential, now time.Time) *output.Table {
	table := &output.Table{Columns: []string{"id", "name", "proof", "rights", "expires"}}
	for _, c := range credentials {
		proof := "token"
		if certificate := c.CertificateSubject + c.CertificateSAN; certificate != "" {
			proof = "certificate " + certificate
		}
		var rights []string
		if c.Role != auth.None {
			rights = append(rights, c.Role.String())
		}
		for _, g := range c.Grants {
			rights = append(rights, g.Role.String()+" of "+g.Studies)
		}
		if c.Metrics {
			rights = append(rights, "metrics")
		}
		table.Rows = append(table.Rows, []any{c.ID, c.Name, proof, strings.Join(rights, ", "), expiry(c, now)})
	}
	return table
}

// expiry says when a credential expires: "never", "expired", or "in 30 days".
func expiry(c *auth.Credential, now time.Time) string {
	switch {
	case c.ExpireTime == nil:
		return "never"
	case !now.Before(*c.ExpireTime):
		return "expired"
	default:
		return "in " + show.Duration(c.ExpireTime.Sub(now))
	}
}

func revokeTokenCommand(env *command.Env) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "revoke ID|NAME",
		Short: "Revoke a token, or all credentials of a name",
		Long: `Revokes the credential with an id, or all credentials of a name. A running server refuses
them within about a second, and ends their calls in progress, such as watching a study.`,
		Example: "  dpareto token revoke ci --auth-file auth.yaml",
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := needAuthFile(path); err != nil {
				return err
			}
			return revoke(env, path, args[0])
		},
	}
	addAuthFileFlag(cmd, &path)
	return cmd
}

func revoke(env *command.Env, path, which string) error {
	revoked := 0
	err := auth.Change(path, func(all []*auth.Credential) ([]*auth.Credential, error) {
		kept := slices.DeleteFunc(slices.Clone(all), func(c *auth.Credential) bool { return c.ID == which || c.Name == which })
		if revoked = len(all) - len(kept); revoked == 0 {
			return nil, fmt.Errorf("%s: no credential has the id or the name %q", path, which)
		}
		return kept, nil
	})
	if err != nil {
		return err
	}
	env.Logger.Info("revoked", "credentials", revoked, "of", which)
	return nil
}

// printCredentials prints credentials as they are in the file, without the hashes.
func printCredentials(out io.Writer, credentials []*auth.Credential) error {
	shown := make([]*auth.Credential, len(credentials))
	for i, c := range credentials {
		clone := *c
		clone.TokenHash = ""
		shown[i] = &clone
	}
	return output.WriteJSON(out, shown)
}
