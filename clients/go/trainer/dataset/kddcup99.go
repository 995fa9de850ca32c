package dataset

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// kddScale says how a number of KDD Cup 99 is brought into [0, 1]. The constants follow
// from what a column means, not from the examples, so that they cost no privacy.
type kddScale struct {
	// limit is the number that becomes 1; larger ones do as well. It is positive.
	limit float64
	// logarithmic numbers x become log(1+x)/log(1+limit), others x/limit.
	logarithmic bool
}

var (
	kddFlag    = kddScale{limit: 1}                            // a truth value, or a rate between 0 and 1
	kddSeconds = kddScale{limit: 86400, logarithmic: true}     // up to a day
	kddBytes   = kddScale{limit: 1<<32 - 1, logarithmic: true} // what 32 bits can count
	kddCount   = kddScale{limit: 1023, logarithmic: true}      // events of one connection
	kddWindow  = kddScale{limit: 511}                          // connections of two seconds, counted up to 511
	kddHost    = kddScale{limit: 255}                          // connections to a host, counted up to 255
	kddTries   = kddScale{limit: 2}                            // su_attempted is 0, 1 or 2
)

// kddColumn is a column of the files and its features: one for a number, one for each
// value of a symbol.
type kddColumn struct {
	name   string
	scale  kddScale
	values []string
	first  int // of its features
}

// kddColumns are the 41 columns before the label.
var kddColumns = func() []kddColumn {
	number := func(scale kddScale, names ...string) []kddColumn {
		columns := make([]kddColumn, len(names))
		for i, name := range names {
			columns[i] = kddColumn{name: name, scale: scale}
		}
		return columns
	}
	symbol := func(name string, values ...string) []kddColumn {
		return []kddColumn{{name: name, values: values}}
	}
	columns := slices.Concat(
		number(kddSeconds, "duration"),
		symbol("protocol_type", "icmp", "tcp", "udp"),
		symbol("service", kddServices...),
		symbol("flag", "OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"),
		number(kddBytes, "src_bytes", "dst_bytes"),
		number(kddFlag, "land"),
		number(kddCount, "wrong_fragment", "urgent", "hot", "num_failed_logins"),
		number(kddFlag, "logged_in"),
		number(kddCount, "num_compromised"),
		number(kddFlag, "root_shell"),
		number(kddTries, "su_attempted"),
		number(kddCount, "num_root", "num_file_creations", "num_shells", "num_access_files", "num_outbound_cmds"),
		number(kddFlag, "is_host_login", "is_guest_login"),
		number(kddWindow, "count", "srv_count"),
		number(kddFlag, "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate",
			"diff_srv_rate", "srv_diff_host_rate"),
		number(kddHost, "dst_host_count", "dst_host_srv_count"),
		number(kddFlag, "dst_host_same_srv_rate", "dst_host_diff_srv_rate", "dst_host_same_src_port_rate",
			"dst_host_srv_diff_host_rate", "dst_host_serror_rate", "dst_host_srv_serror_rate",
			"dst_host_rerror_rate", "dst_host_srv_rerror_rate"),
	)
	first := 0
	for i := range columns {
		columns[i].first = first
		first += max(1, len(columns[i].values))
	}
	return columns
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
// same host by 255, su_attempted by 2; what is then above 1 becomes 1. A row has at most
// 41 features other than 0 and so a Euclidean norm of at most √41. The dataset is sparse.
// The input may be compressed with gzip.
//
// Malformed input, which includes unknown symbols and negative numbers, gives a
// *SyntaxError.
func ReadKDDCup99(r io.Reader, file string) (*Dataset, error) {
	records, err := newRecords(r, file, len(kddColumns)+1)
	if err != nil {
		return nil, err
	}
	b := newBuilder(0, 0, false)
	indices := make([]int32, 0, len(kddColumns))
	values := make([]float32, 0, len(kddColumns))
	for records.next() {
		indices, values = indices[:0], values[:0]
		for i := range kddColumns {
			column := &kddColumns[i]
			offset, value, err := column.feature(records.fields[i])
			if err != nil {
				return nil, records.fail(i, "%s", err)
			}
			if value != 0 {
				indices = append(indices, int32(column.first+offset))
				values = append(values, value)
			}
		}
		label := float32(1)
		switch text := records.fields[len(kddColumns)]; {
		case text == "normal.":
			label = -1
		case len(text) < 2 || !strings.HasSuffix(text, "."):
			return nil, records.fail(len(kddColumns), "label %q does not end with a full stop", text)
		}
		b.add(label, indices, values)
	}
	if records.err != nil {
		return nil, records.err
	}
	return b.dataset(file, KDDCup99Dim), nil
}

// feature returns the feature that a field stands for, counted from the column's first,
// and its value.
func (c *kddColumn) feature(text string) (offset int, value float32, err error) {
	if c.values != nil {
		offset, ok := slices.BinarySearch(c.values, text)
		if !ok {
			return 0, 0, fmt.Errorf("%s %q is unknown", c.name, text)
		}
		return offset, 1, nil
	}
	switch text { // the most frequent ones
	case "0", "0.00":
		return 0, 0, nil
	case "1.00":
		text = "1"
	}
	x, err := parseFinite(text, c.name)
	if err != nil {
		return 0, 0, err
	}
	if x < 0 {
		return 0, 0, fmt.Errorf("%s %s is negative", c.name, text)
	}
	return 0, c.scale.apply(x), nil
}

// apply returns the scaled x.
func (s kddScale) apply(x float32) float32 {
	v := float64(x) / s.limit
	if s.logarithmic {
		v = math.Log1p(float64(x)) / math.Log1p(s.limit)
	}
	return float32(min(v, 1))
}
