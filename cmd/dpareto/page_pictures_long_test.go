//go:build long

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dpareto/dpareto/internal/require"
)

// pagePictures names the folder that TestPagePictures writes into, and pageData the folder with Adult.
const (
	pagePictures = "DPARETO_PAGE_PICTURES"
	pageData     = "DPARETO_PAGE_DATA"
)

// TestPagePictures makes the pictures of the documentation: each view of two studies of Adult, and of one that
// begins, at 1440 × 900.
func TestPagePictures(t *testing.T) {
	folder := os.Getenv(pagePictures)
	if folder == "" {
		t.Skip(pagePictures + " is not set: see make page-pictures")
	}
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"))
	study := func(id string, args ...string) {
		file := filepath.Join(t.TempDir(), id+".yaml")
		must(t, append([]string{"study", "init", "--trainer", "dp-sgd", "--id", id, "--file", file}, args...)...)
		must(t, "study", "create", "--server", srv.address, file)
	}
	study("adult-lr", "--trials", "25")
	study("adult-svm", "--trials", "12", "--set", "model=linear-svm")
	for _, id := range []string{"adult-lr", "adult-svm"} {
		must(t, "agent", "--server", srv.address, "--study", id, "--data-dir", os.Getenv(pageData))
	}
	b := openTab(t, srv.url)
	b.prefer("light")
	b.run(chromedp.EmulateViewport(1440, 900))
	const lr = "/studies/adult-lr"
	for name, path := range map[string]string{"studies": "/studies", "study": lr, "choose": lr + "/choose", "why": lr + "/why"} {
		b.openWhole(path)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "page-"+name+".png"), picture, 0o644))
	}
}
