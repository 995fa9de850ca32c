package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpareto/dpareto/internal/text"
	"github.com/dpareto/dpareto/server/filemode"
)

const (
	// maxConnections bounds the connections of the pool, unless the URL has pool_max_conns.
	maxConnections = 16
	// keepAlive is how often the system asks whether the other side of an idle connection is there.
	keepAlive = 15 * time.Second
)

// IsURL reports whether a store's name is the URL of a database.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Options say how to open a database.
type Options struct {
	// PasswordFile is a file with the password alone, which is read for every connection. The usual
	// sources (PGPASSFILE, PGPASSWORD, a service file) need none.
	PasswordFile string
	// Create starts a new store if the database has none. Without it that is an error.
	Create bool
	// Alone refuses a store that servers use, and keeps them away until Close.
	Alone bool
	// Unsafe accepts a database that may lose acknowledged writes (fsync or full_page_writes off).
	Unsafe bool
}

// Check returns an error if Open could not use a URL and its options, whatever the database.
func Check(url string, o Options) error {
	_, err := parse(url, o)
	return err
}

// errPassword refuses a URL that other users of the machine can read.
var errPassword = errors.New("the URL must not hold a password, which process lists and logs show: use PGPASSFILE, a service file or a file with the password")

// parse returns the settings for connections to the database with a URL.
func parse(rawURL string, o Options) (*pgxpool.Config, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("the URL of the database cannot be parsed") // the cause would show it whole
	}
	if _, has := parsed.User.Password(); has || parsed.Query().Has("password") {
		return nil, errPassword
	}
	config, err := pgxpool.ParseConfig(rawURL)
	if err == nil && mayBePlain(config.ConnConfig.Config) {
		// The last value counts. The others stay as they are: url.Values encodes a space as +, which is none here.
		parsed.RawQuery = strings.TrimPrefix(strings.TrimSuffix(parsed.RawQuery, "&")+"&sslmode=verify-full", "&")
		config, err = pgxpool.ParseConfig(parsed.String())
	}
	if err != nil {
		return nil, err
	}
	if !parsed.Query().Has("pool_max_conns") {
		config.MaxConns = maxConnections
	}
	config.ConnConfig.DialFunc = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	config.ConnConfig.RuntimeParams["application_name"] = "dpareto"
	if o.PasswordFile == "" {
		return config, nil
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) (err error) {
		c.Password, err = readPassword(o.PasswordFile)
		return err
	}
	_, err = readPassword(o.PasswordFile)
	return config, err
}

// readPassword reads a file with a password, which strangers must not read.
func readPassword(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = filemode.Check(path, info, 0o640, "others can read the password of the database")
	}
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	password, err := text.Decode(content) // editors may have put a byte order mark first
	return strings.TrimRight(string(password), "\r\n"), err
}

// mayBePlain reports whether a connection would do without TLS if the server offers none, or an attacker
// says so. That is the default of PostgreSQL's clients (sslmode prefer).
func mayBePlain(c pgconn.Config) bool {
	hosts := map[string]bool{c.Host: c.TLSConfig != nil}
	for _, f := range c.Fallbacks {
		if before, seen := hosts[f.Host]; seen && before != (f.TLSConfig != nil) {
			return true
		}
		hosts[f.Host] = f.TLSConfig != nil
	}
	return false
}

// sessionSettings are made in every session. Commits wait for the disk, whatever the role's settings.
// Every statement has one sensible plan, by the primary key. The database notices within half a minute
// that the machine of a server is gone, and after two minutes that a server no longer goes on in the middle of a
// transaction: its locks keep others waiting.
const sessionSettings = `
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
SELECT set_config(name, value, false) FROM (VALUES
	('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('jit', 'off'),
	('tcp_keepalives_idle', '15'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '30000'),
	('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '120000')
) AS settings (name, value) WHERE name IN (SELECT name FROM pg_settings)`

// schema is where the sessions of a pool find their tables: the first schema of the search_path that the
// first session sees. Later schemas of the path may hold the store of another server, and the path may
// change, or begin with a schema that is made later.
type schema struct {
	mu   sync.Mutex
	name string // "" before the first session
}

// errNoSchema says that no schema of the search_path exists.
var errNoSchema = errors.New("no schema of the search_path exists")

// prepare prepares a new session.
func (s *schema) prepare(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, sessionSettings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name == "" {
		if err := conn.QueryRow(ctx, "SELECT coalesce(current_schema(), '')").Scan(&s.name); err != nil {
			return err
		}
	}
	if s.name == "" {
		return errNoSchema
	}
	_, err := conn.Exec(ctx, "SELECT set_config('search_path', $1, false)", pgx.Identifier{s.name}.Sanitize())
	return err
}

// checkServer refuses a database server that may lose acknowledged writes.
func checkServer(ctx context.Context, conn *pgx.Conn) error {
	for _, setting := range []string{"fsync", "full_page_writes"} {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&value); err != nil {
			return err
		}
		if value != "on" {
			return fmt.Errorf("the database server has %s %s: it can lose acknowledged writes, and the whole store, when its machine fails", setting, value)
		}
	}
	return nil
}
