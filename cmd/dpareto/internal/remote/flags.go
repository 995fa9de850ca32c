package remote

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// DefaultAddress is where a server listens and where clients look for one.
const DefaultAddress = "127.0.0.1:8321"

// DefaultHTTPAddress is where a server serves its page and JSON over HTTP, if the port is free.
const DefaultHTTPAddress = "127.0.0.1:8322"

// TokenVariable is the environment variable with the token of clients. There is no flag
// for it: other users of the machine can read the arguments of programs.
const TokenVariable = "DPARETO_TOKEN"

// flags say how to reach the server, and with which rights.
type flags struct {
	context        string
	address        string
	plaintext      bool
	tls            bool
	ca             string
	serverName     string
	cert, key      string
	tokenFile      string
	plaintextToken bool
}

func (c *flags) add(set *pflag.FlagSet) {
	own := c.connection()
	own.StringVar(&c.context, contextFlag, "", "the context to use; default the one of \"dpareto context use\", unless --"+serverFlag+" is given")
	set.AddFlagSet(own)
	own.VisitAll(func(flag *pflag.Flag) { command.FromEnvironment(set, flag.Name) })
	command.InTopic(connectionTopic, "--"+serverFlag+" (env DPARETO_SERVER)", own)
}

// connectionTopic is the page of the help on the flags of the connection.
const connectionTopic = "connection"

// ConnectionTopic returns the page of the help on the flags that say how to reach a server.
func ConnectionTopic() *cobra.Command {
	var c flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.add(set)
	return &cobra.Command{Use: connectionTopic, Short: "Flags of the connection to a server", Long: `Every command that calls a server takes these flags. "dpareto context add" keeps them under a name.

` + set.FlagUsages()}
}

// Names of flags.
const (
	contextFlag   = "context"
	serverFlag    = "server"
	tokenFileFlag = "token-file"
)

// connection returns the flags of what a context keeps.
func (c *flags) connection() *pflag.FlagSet {
	own := pflag.NewFlagSet("client", pflag.ContinueOnError)
	own.StringVar(&c.address, serverFlag, DefaultAddress, "address of the server")
	own.BoolVar(&c.plaintext, "plaintext", false, "connect without TLS, also to a server on another machine")
	own.BoolVar(&c.tls, "tls", false, "connect with TLS, also to a server on this machine")
	own.StringVar(&c.ca, "tls-ca", "", "trust only servers with a certificate from the authorities in this file")
	own.StringVar(&c.serverName, "tls-server-name", "", "name that the server's certificate must be for; default the host in --server")
	own.StringVar(&c.cert, "client-cert", "", "certificate to show the server")
	own.StringVar(&c.key, "client-key", "", "private key of the certificate")
	own.StringVar(&c.tokenFile, tokenFileFlag, "", "file with the token to send; without it that in "+TokenVariable)
	own.BoolVar(&c.plaintextToken, "plaintext-token", false, "let the token go to another machine in plain text")
	return own
}

// options returns the options of the client that the flags ask for.
func (c *flags) options() []dpareto.Option {
	var options []dpareto.Option
	add := func(wanted bool, option func() dpareto.Option) {
		if wanted {
			options = append(options, option())
		}
	}
	token := os.Getenv(TokenVariable)
	add(c.plaintext, dpareto.WithPlaintext)
	add(c.tls, dpareto.WithTLS)
	add(c.ca != "", func() dpareto.Option { return dpareto.WithCA(c.ca) })
	add(c.serverName != "", func() dpareto.Option { return dpareto.WithServerName(c.serverName) })
	add(c.cert != "" || c.key != "", func() dpareto.Option { return dpareto.WithClientCertificate(c.cert, c.key) })
	add(c.plaintextToken, dpareto.WithTokenInPlaintext)
	add(c.tokenFile == "" && token != "", func() dpareto.Option { return dpareto.WithToken(token) })
	add(c.tokenFile != "", func() dpareto.Option { return dpareto.WithTokenFile(c.tokenFile) })
	return options
}
