//go:build long

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestPagePictures takes the pictures of docs/images, of views of a study that it trains.
func TestPagePictures(t *testing.T) {
	const largest = 120_000 // bytes
	srv := trainedPage(t, 32)
	b := openTab(t, srv.url)
	b.prefer("light")
	for name, path := range views {
		b.run(chromedp.EmulateViewport(1200, 900))
		b.openWhole(path)
		height := min(eval[int64](b, `document.documentElement.scrollHeight`), 2000)
		zone := emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}
		if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, zone); err != nil {
			t.Fatal(err)
		}
		shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: new(true), Clip: &page.Viewport{Width: 1200, Height: float64(height), Scale: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		content := reduced(t, shot.Data)
		t.Logf("%s: %d bytes", name, len(content))
		if len(content) > largest {
			t.Errorf("the picture of %s has %d bytes, more than %d", name, len(content), largest)
		}
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "images", "page-"+name+".png"), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reduced returns a picture with a palette of its 256 commonest colours.
func reduced(t *testing.T, content []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[color.Color]int)
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			counts[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	small := image.NewPaletted(full.Bounds(), colours[:min(256, len(colours))])
	draw.Draw(small, small.Bounds(), full, image.Point{}, draw.Src)
	var zipped bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&zipped, small); err != nil {
		t.Fatal(err)
	}
	return zipped.Bytes()
}
