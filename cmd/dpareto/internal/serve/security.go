package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/certs"
)

// securityFlags say who may call the server, and how.
type securityFlags struct {
	authFile          string
	tls               certs.Files
	insecureListen    bool
	insecurePlaintext bool
	reflection        string
	auditFile         string
}

// Values of the flag reflection.
const (
	reflectionAuto = "auto"
	reflectionOn   = "on"
	reflectionOff  = "off"
)

// standardError in place of the path of a file stands for standard error.
const standardError = "-"

func (f *securityFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.authFile, "auth-file", "", "file of the credentials of callers, kept by dpareto token; read again when it changes")
	flags.StringVar(&f.tls.Cert, "tls-cert", "", "certificate of the server in PEM, with intermediate certificates; read again when it changes")
	flags.StringVar(&f.tls.Key, "tls-key", "", "private key of the certificate in PEM")
	flags.StringVar(&f.tls.ClientCA, "tls-client-ca", "", "accept client certificates of the authorities in this file, for callers that --auth-file names")
	flags.BoolVar(&f.tls.RequireClient, "tls-require-client-cert", false, "refuse connections without a client certificate")
	flags.StringVar(&f.reflection, "reflection", reflectionAuto, "gRPC server reflection: on, off, or auto, which is on where only this machine can call")
	flags.StringVar(&f.auditFile, "audit-file", "", `log of all changes as JSON lines; "-" is standard error`)
	flags.BoolVar(&f.insecureListen, "insecure-listen", false,
		"allow an address that other machines can reach without --auth-file: anyone there can read and change everything")
	flags.BoolVar(&f.insecurePlaintext, "insecure-plaintext", false,
		"allow an address that other machines can reach without --tls-cert: tokens and data go over the network unencrypted")
}

// validate refuses invalid combinations.
func (f *securityFlags) validate() error {
	switch {
	case (f.tls.Cert == "") != (f.tls.Key == ""):
		return command.Usage(errors.New("tls-cert and tls-key go together"))
	case f.tls.ClientCA != "" && f.tls.Cert == "":
		return command.Usage(errors.New("tls-client-ca requires tls-cert and tls-key"))
	case f.tls.ClientCA != "" && f.authFile == "":
		return command.Usage(errors.New("tls-client-ca: requires auth-file, which has the roles of the owners of certificates"))
	case f.tls.RequireClient && f.tls.ClientCA == "":
		return command.Usage(errors.New("tls-require-client-cert requires tls-client-ca"))
	case !slices.Contains([]string{reflectionAuto, reflectionOn, reflectionOff}, f.reflection):
		return command.Usagef("reflection: must be auto, on or off, is %q", f.reflection)
	}
	return nil
}

// isLoopback reports whether only this machine can reach an address of the form host:port.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback(), nil
}

// checkListen refuses an address, the value of a flag, that other machines can reach, unless
// calls are authenticated and encrypted, or the user accepts that they are not.
func checkListen(logger *slog.Logger, flag, address string, f *securityFlags) error {
	local, err := isLoopback(address)
	if err != nil {
		return command.Usagef("%s: %w", flag, err)
	}
	if local {
		return nil
	}
	encrypted := f.tls.Cert != ""
	switch {
	case f.authFile == "" && !f.insecureListen:
		return command.Usagef("%s: other machines can reach %s, so callers must authenticate; set --auth-file, "+
			"use 127.0.0.1, or set --insecure-listen to let every caller read and change everything", flag, address)
	case f.authFile != "" && !encrypted && !f.insecurePlaintext:
		return command.Usagef("%s: other machines can reach %s, so tokens must be encrypted; set --tls-cert, "+
			"use 127.0.0.1, or set --insecure-plaintext if a proxy encrypts", flag, address)
	case f.authFile == "" && !encrypted:
		logger.Warn("ANYBODY WHO CAN REACH THIS ADDRESS CAN READ AND CHANGE ALL STUDIES: there is neither authentication nor encryption", flag, address)
	case f.authFile == "":
		logger.Warn("ANYBODY WHO CAN REACH THIS ADDRESS CAN READ AND CHANGE ALL STUDIES: there is no authentication", flag, address)
	case !encrypted:
		logger.Warn("ANYBODY ON THE NETWORK CAN READ AND USE THE TOKENS OF CALLERS: there is no encryption", flag, address)
	}
	return nil
}

// security is made from the flags of securityFlags.
type security struct {
	auth       *auth.Authenticator // nil: none
	tls        *tls.Config         // nil: none
	audit      *audit.Log          // nil: none
	reflection bool
}

// open reads the files that the flags name. The caller closes the audit log.
func (f *securityFlags) open(env *command.Env, address string) (*security, error) {
	local, err := isLoopback(address)
	if err != nil {
		return nil, err
	}
	s := &security{reflection: f.reflection == reflectionOn || f.reflection == reflectionAuto && local}
	if f.authFile != "" {
		if s.auth, err = auth.Open(f.authFile, auth.Options{Logger: env.Logger}); err != nil {
			return nil, fmt.Errorf("auth-file: %w", err)
		}
	}
	if f.tls.Cert != "" {
		if s.tls, err = certs.Server(f.tls, env.Logger); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	switch f.auditFile {
	case "":
	case standardError:
		s.audit = audit.New(env.Console, env.Logger)
	default:
		if s.audit, err = audit.Open(f.auditFile, env.Logger); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// close closes what open has opened.
func (s *security) close() error {
	if s.audit == nil {
		return nil
	}
	return s.audit.Close()
}
