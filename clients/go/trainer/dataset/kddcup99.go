package dataset

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// kddColumns are the 41 columns and the label. The limits follow from the meaning of a column, not from the
// examples, so that they cost no privacy.
var kddColumns = func() []column {
	all := func(kind func(name string, limit float64) column, limit float64, names ...string) []column {
		columns := make([]column, len(names))
		for i, name := range names {
			columns[i] = kind(name, limit)
		}
		return columns
	}
	const (
		flag   = 1         // a truth value, or a rate between 0 and 1
		bytes  = 1<<32 - 1 // what 32 bits can count
		events = 1023      // of one connection
		window = 511       // connections of two seconds, counted up to 511
		host   = 255       // connections to a host, counted up to 255
	)
	return slices.Concat(
		[]column{
			logarithm("duration", 86400), // in seconds, up to a day
			category("protocol_type", "icmp", "tcp", "udp"),
			category("service", kddServices...),
			category("flag", "OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"),
		},
		all(logarithm, bytes, "src_bytes", "dst_bytes"),
		all(number, flag, "land"),
		all(logarithm, events, "wrong_fragment", "urgent", "hot", "num_failed_logins"),
		all(number, flag, "logged_in"),
		all(logarithm, events, "num_compromised"),
		all(number, flag, "root_shell"),
		all(number, 2, "su_attempted"), // 0, 1 or 2
		all(logarithm, events, "num_root", "num_file_creations", "num_shells", "num_access_files", "num_outbound_cmds"),
		all(number, flag, "is_host_login", "is_guest_login"),
		all(number, window, "count", "srv_count"),
		all(number, flag, "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate",
			"diff_srv_rate", "srv_diff_host_rate"),
		all(number, host, "dst_host_count", "dst_host_srv_count"),
		all(number, flag, "dst_host_same_srv_rate", "dst_host_diff_srv_rate", "dst_host_same_src_port_rate",
			"dst_host_srv_diff_host_rate", "dst_host_serror_rate", "dst_host_srv_serror_rate",
			"dst_host_rerror_rate", "dst_host_srv_rerror_rate"),
		[]column{{"label", 0, func(field string) (int, float32, error) {
			switch {
			case field == "normal.":
				return 0, -1, nil
			case len(field) < 2 || !strings.HasSuffix(field, "."):
				return 0, 0, fmt.Errorf("label %q does not end with a full stop", field)
			}
			return 0, 1, nil
		}}},
	)
}()

// kddServices are the network services: the 70 of the whole training set, and icmp of the
// test set.
var kddServices = []string{
	"IRC", "X11", "Z39_50", "aol", "auth", "bgp", "courier", "csnet_ns", "ctf", "daytime", "discard",
	"domain", "domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger", "ftp", "ftp_data", "gopher",
	"harvest", "hostnames", "http", "http_2784", "http_443", "http_8001", "icmp", "imap4", "iso_tsap",
	"klogin", "kshell", "ldap", "link", "login", "mtp", "name", "netbios_dgm", "netbios_ns",
	"netbios_ssn", "netstat", "nnsp", "nntp", "ntp_u", "other", "pm_dump", "pop_2", "pop_3", "printer",
	"private", "red_i", "remote_job", "rje", "shell", "smtp", "sql_net", "ssh", "sunrpc", "supdup",
	"systat", "telnet", "tftp_u", "tim_i", "time", "urh_i", "urp_i", "uucp", "uucp_path", "vmnet", "whois",
}

// KDDCup99Dim is the number of features of KDD Cup 99: 38 numbers, and one for each of 3
// protocols, 71 services and 11 states of a connection.
const KDDCup99Dim = 38 + 3 + 71 + 11

// LoadKDDCup99 reads a file of KDD Cup 99 as ReadKDDCup99 does. The dataset is named after
// the file.
func LoadKDDCup99(path string) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return ReadKDDCup99(r, path) })
}

// ReadKDDCup99 reads network connections in the format of the KDD Cup of 1999 (UCI: Stolfo
// and others), one a line: 41 columns and the label, separated by commas. The label is −1
// for normal connections and 1 for attacks of any kind.
//
// The features are in the order of the columns. The three columns of symbols are one-hot
// encoded by fixed lists. All other features are in [0, 1], by constants that follow from
// the meaning of the columns and not from the data: rates and truth values as they are;
// duration as log(1+x)/log(1+86400); bytes likewise with 2³²−1 and counts of events with
// 1023 in place of 86400; connections of the last two seconds divided by 511, those to the
// same host by 255, su_attempted by 2; values that are then above 1 become 1. A row has at
// most 41 features other than 0 and so a Euclidean norm of at most √41. The dataset is
// sparse. The input may be compressed with gzip.
//
// Malformed input, which includes unknown symbols and negative numbers, gives a
// *SyntaxError.
func ReadKDDCup99(r io.Reader, file string) (*Dataset, error) {
	return readColumns(r, file, layout{columns: kddColumns})
}
