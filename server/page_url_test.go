package server

import (
	"testing"

	"google.golang.org/grpc/metadata"
)

// Callers get a URL of the page that leads to the server from where they are.
func TestPageURL(t *testing.T) {
	const local, all, one = "http://127.0.0.1:8322/", "https://[::]:8322/", "http://192.0.2.1:8322/"
	for _, test := range []struct{ page, authority, forwarded, want string }{
		{"", "localhost:8321", "", ""},
		{local, "localhost:8321", "", local},
		{local, "127.0.0.1:8321", "", local},
		{local, "[::1]:8321", "", local},
		{local, "lab.example:8321", "", ""},
		{local, "192.0.2.1:8321", "", ""},
		{local, "local", "127.0.0.1:8322", local},
		{local, "", "", ""},
		{all, "lab.example:8321", "", "https://lab.example:8322/"},
		{all, "lab.example", "", "https://lab.example:8322/"},
		{all, "127.0.0.1:18321", "", "https://127.0.0.1:8322/"},
		{all, "[2001:db8::1]:8321", "", "https://[2001:db8::1]:8322/"},
		{all, "local", "lab.example:8322", "https://lab.example:8322/"},
		{all, "", "", ""},
		{"http://0.0.0.0:8322/", "lab.example:8321", "", "http://lab.example:8322/"},
		{one, "lab.example:8321", "", one},
		{one, "", "", one},
	} {
		md := metadata.MD{}
		for key, value := range map[string]string{":authority": test.authority, "x-forwarded-host": test.forwarded} {
			if value != "" {
				md.Set(key, value)
			}
		}
		if got := pageURL(metadata.NewIncomingContext(t.Context(), md), test.page); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}
