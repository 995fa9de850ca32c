package command

import (
	"runtime/debug"
	"testing"
)

func TestRecorded(t *testing.T) {
	const revision = "1d80cff6b0c1d2e3f405162738495a6b7c8d9e0f"
	for _, tt := range []struct {
		revision, modified, want string
	}{
		{"", "", ""},
		{"", "true", ""},
		{revision, "false", "+1d80cff6b0c1"},
		{revision, "true", "+1d80cff6b0c1.dirty"},
	} {
		settings := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: tt.revision}, {Key: "vcs.modified", Value: tt.modified}}
		if tt.revision == "" {
			settings = settings[2:]
		}
		if got := recorded(settings); got != tt.want {
			t.Errorf("recorded(%q, modified %q) = %q, want %q", tt.revision, tt.modified, got, tt.want)
		}
	}
}
