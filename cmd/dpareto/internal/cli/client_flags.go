package cli

import (
	"os"

	"github.com/spf13/pflag"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// tokenVariable is the environment variable with the token of clients. There is no flag
// for it: other users of the machine can read the arguments of programs.
const tokenVariable = "DPARETO_TOKEN"

// clientFlags say how to reach the server, and as whom.
type clientFlags struct {
	address        string
	plaintext      bool
	tls            bool
	ca             string
	serverName     string
	cert, key      string
	tokenFile      string
	plaintextToken bool
}

func (c *clientFlags) add(flags *pflag.FlagSet) {
	own := pflag.NewFlagSet("client", pflag.ContinueOnError)
	own.StringVar(&c.address, "server", DefaultAddress, "address of the server")
	own.BoolVar(&c.plaintext, "plaintext", false, "connect without TLS to a server on another machine, too")
	own.BoolVar(&c.tls, "tls", false, "connect with TLS to a server on this machine, too")
	own.StringVar(&c.ca, "tls-ca", "", "trust only servers with a certificate from the authorities in this file")
	own.StringVar(&c.serverName, "tls-server-name", "", "name that the server's certificate must be for; default the host in --server")
	own.StringVar(&c.cert, "client-cert", "", "certificate to show the server")
	own.StringVar(&c.key, "client-key", "", "private key of the certificate")
	own.StringVar(&c.tokenFile, "token-file", "", "file with the token to send; without it that in "+tokenVariable)
	own.BoolVar(&c.plaintextToken, "plaintext-token", false, "let the token go to another machine in plain text")
	flags.AddFlagSet(own)
	own.VisitAll(func(flag *pflag.Flag) { command.FromEnvironment(flags, flag.Name) })
}

// options returns the options of the client that the flags ask for.
func (c *clientFlags) options() []dpareto.Option {
	var options []dpareto.Option
	add := func(wanted bool, option func() dpareto.Option) {
		if wanted {
			options = append(options, option())
		}
	}
	token := os.Getenv(tokenVariable)
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
