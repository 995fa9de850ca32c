package pagination

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/server/invalid"
)

const (
	// defaultPageSize and maxPageSize bound the resources on a page.
	defaultPageSize = 100
	maxPageSize     = 1000
	// maxScanned bounds the resources read for an unsorted page. If few pass the filter, the page is
	// shorter.
	maxScanned = 10_000
	// maxBytes bounds the encoded resources on a page, not counting the last. Clients of gRPC refuse
	// answers of more than 4 MiB unless they are told otherwise.
	maxBytes = 3 << 20
)

// pageSize validates a requested page size; 0 means the default.
func pageSize(requested int32) (int, error) {
	switch {
	case requested < 0 || requested > maxPageSize:
		return 0, invalid.Field("page_size", "must be in [0, %d], is %d", maxPageSize, requested)
	case requested == 0:
		return defaultPageSize, nil
	default:
		return int(requested), nil
	}
}

// IsQuick reports whether a page takes little time: it has at most the default size, and the list no
// filter and no order.
func IsQuick(size int32, filter, order string) bool {
	return size <= defaultPageSize && filter == "" && order == ""
}

// Query is the part that the pages of a list have in common.
type Query struct {
	digest   [8]byte
	size     int
	Position string // of the last resource on the previous page; "" for the first page
	Revision int64  // of the study at the first page; 0 on the first page itself
}

// NewQuery returns the query for a page. Its token must come from a query with equal parts.
func NewQuery(size int32, token string, parts ...any) (*Query, error) {
	n, err := pageSize(size)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", parts))
	q := &Query{digest: [8]byte(sum[:8]), size: n}
	if token == "" {
		return q, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(decoded) < 16 || [8]byte(decoded) != q.digest {
		return nil, invalid.Field("page_token", "is not a token of this list with this filter and order")
	}
	q.Revision = int64(binary.BigEndian.Uint64(decoded[8:]))
	q.Position = string(decoded[16:])
	return q, nil
}

// token returns the token of the page after a position.
func (q *Query) token(position string) string {
	decoded := binary.BigEndian.AppendUint64(q.digest[:], uint64(q.Revision))
	return base64.RawURLEncoding.EncodeToString(append(decoded, position...))
}

// Number returns the position as a number, 0 for the first page.
func (q *Query) Number() int64 {
	if len(q.Position) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(q.Position)))
}

// NumberKey returns a position for a number. Positions sort like non-negative numbers.
func NumberKey(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// Page collects the resources of a page in stored order.
type Page[T proto.Message] struct {
	*Query
	Resources []T
	bytes     int // of the resources
	scanned   int
	last      string // position of the last scanned resource
	Next      string // token of the next page, "" on the last one
}

// Add adds a resource if it belongs to the list; one that does not may be nil. Call it in the order of
// positions. It returns false once the page is full.
func (p *Page[T]) Add(position string, belongs bool, resource T) bool {
	if len(p.Resources) == p.size || p.bytes > maxBytes || p.scanned == maxScanned {
		p.Next = p.token(p.last)
		return false
	}
	p.scanned++
	p.last = position
	if belongs {
		p.Resources = append(p.Resources, resource)
		p.bytes += proto.Size(resource)
	}
	return true
}

// Sorted collects the resources of a page that is not in stored order. It keeps little more than the
// page.
type Sorted[T proto.Message] struct {
	*Query
	items []item[T]
	bytes int    // of the items
	bound string // position of the first item of the next page, if there are that many; "" otherwise
}

type item[T any] struct {
	position string
	resource T
	bytes    int
}

// Add adds a resource that belongs to the list.
func (s *Sorted[T]) Add(position string, resource T) {
	if position <= s.Position || s.bound != "" && position >= s.bound {
		return // on another page
	}
	added := item[T]{position, resource, proto.Size(resource)}
	s.items = append(s.items, added)
	s.bytes += added.bytes
	if len(s.items) > 2*s.size+1 || s.bytes > 2*maxBytes+added.bytes {
		s.cut()
	}
}

// cut drops everything beyond the page except the first resource of the next.
func (s *Sorted[T]) cut() {
	slices.SortFunc(s.items, func(a, b item[T]) int { return cmp.Compare(a.position, b.position) })
	n := 0
	for s.bytes = 0; n < len(s.items) && n < s.size && s.bytes <= maxBytes; n++ {
		s.bytes += s.items[n].bytes
	}
	if n < len(s.items) {
		s.bound = s.items[n].position
		s.bytes += s.items[n].bytes
		clear(s.items[n+1:])
		s.items = s.items[:n+1]
	}
}

// Page returns the resources on the page, and the token of the next page.
func (s *Sorted[T]) Page() (resources []T, next string) {
	s.cut()
	for i, item := range s.items {
		if item.position == s.bound {
			return resources, s.token(s.items[i-1].position)
		}
		resources = append(resources, item.resource)
	}
	return resources, ""
}
