package site

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/server/web/look"
)

//go:embed static
var static embed.FS

// staticPath begins the URLs of assets. The digest of an asset follows, so that browsers keep it
// until it changes.
const staticPath = "/static/"

//go:embed static/NOTICES.txt
var notices string

// Notices returns the notices that the authors of the libraries among the scripts and styles
// require.
func Notices() string { return notices }

// contentTypes are the types of assets by extension; the types that the machine gives may be wrong.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// assets are the scripts and styles, by their URL.
type assets struct {
	urls  map[string]string // by file name
	files map[string]*asset // by URL
}

// asset is a script or style.
type asset struct {
	content, zipped []byte
	contentType     string
}

// loadAssets compresses the assets once.
func loadAssets() (*assets, error) {
	a := &assets{urls: make(map[string]string), files: make(map[string]*asset)}
	entries, err := static.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	contents := map[string][]byte{"page.css": []byte(look.CSS)}
	for _, entry := range entries {
		if contents[entry.Name()], err = static.ReadFile("static/" + entry.Name()); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
	}
	for name, content := range contents {
		var zipped bytes.Buffer
		z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		if _, err := z.Write(content); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		if err := z.Close(); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		digest := sha256.Sum256(content)
		url := staticPath + hex.EncodeToString(digest[:8]) + "/" + name
		a.urls[name] = url
		a.files[url] = &asset{content: content, zipped: zipped.Bytes(), contentType: contentTypes[path.Ext(name)]}
	}
	return a, nil
}

// url returns the URL of an asset.
func (a *assets) url(name string) (string, error) {
	url, ok := a.urls[name]
	if !ok {
		return "", fmt.Errorf("web: there is no asset %q", name)
	}
	return url, nil
}

// ServeHTTP implements http.Handler.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	limitWriting(w)
	header := w.Header()
	header.Set("Content-Type", file.contentType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	content := file.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content = file.zipped
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the reader may have gone
}
