package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/internal/require"
)

// phrases make prose read as if translated. The highest rate per 10,000 words is twice that of the comments and
// documents of bbolt, connect-go, gonum and four trees of the standard library (math, net/http, encoding, database):
// 700,000 words. One occurrence is no rate. Read the sentence and write it again; do not replace the phrase.
var phrases = []struct {
	pattern string
	rate    float64
	instead string
}{
	{`what (?:an?|he|is|it|she|the|they|was)`, 0.9, "a noun: the guarantee, not what is promised"},
	{`(?:that|those) of`, 0.9, "the noun again, or a genitive"},
	{`beside`, 0, "next to, with, in addition to"},
	{`\w+, too`, 0, "also, before the verb"},
	{`(?:go|goes|going|went) on`, 0, "continue"},
	{`(?:nobody|whoever) \w+`, 0.3, "the subject that acts, or the passive"},
	{`but for`, 0.4, "except"},
	{`of (?:his|its|my|our|their|your) own`, 0.2, "its, separate"},
}

// The documents use few phrases that read as translated.
func TestPlainWords(t *testing.T) {
	root := clitest.Root(t)
	var texts []string
	words := 0
	files := documents(t, root)
	for _, file := range files {
		text := prose(t, file)
		texts = append(texts, text)
		words += len(strings.Fields(text))
	}
	if words < 20_000 {
		t.Fatalf("%d words in %d files", words, len(files))
	}
	for _, p := range phrases {
		pattern := regexp.MustCompile(`(?i)\b` + p.pattern + `\b`)
		var found []string
		for i, text := range texts {
			for _, at := range pattern.FindAllStringIndex(text, -1) {
				name, err := filepath.Rel(root, files[i])
				require.NoError(t, err)
				found = append(found, fmt.Sprintf("%s:%d: %s", name, 1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]]))
			}
		}
		if rate := float64(len(found)) / float64(words) * 10_000; len(found) > 1 && rate > p.rate {
			t.Errorf("%q: at most %g per 10,000 words, is %.1f; instead: %s\n%s", p.pattern, p.rate, rate, p.instead, strings.Join(found, "\n"))
		}
	}
}

// documents returns the files that people read: the README, the changelog and the pages.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"README.md", "CHANGELOG.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		files = append(files, found...)
	}
	return files
}

// code matches blocks of code, indented code, and code in a line.
var code = regexp.MustCompile("(?ms)^```.*?^```|^    [^\n]*|`[^`\n]*`")

// prose returns a document without its code, with all of its lines.
func prose(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return code.ReplaceAllStringFunc(string(text), func(block string) string { return "`" + strings.Repeat("\n", strings.Count(block, "\n")) })
}
