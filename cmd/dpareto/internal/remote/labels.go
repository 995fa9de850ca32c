package remote

import (
	"errors"
	"maps"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
)

// LabelsField is the field with the labels of studies and trials.
const LabelsField = "labels"

// ErrNoChange is returned by an update that changes nothing.
var ErrNoChange = errors.New("nothing to change; see --help")

// LabelFlags change the labels of a study or a trial.
type LabelFlags struct {
	set    map[string]string
	remove []string
}

// Add adds the flags to a command.
func (l *LabelFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&l.set, "label", nil, "label to set, such as team=vision")
	cmd.Flags().StringSliceVar(&l.remove, "unlabel", nil, "key of a label to remove")
}

// IsEmpty reports whether the flags change nothing.
func (l *LabelFlags) IsEmpty() bool { return len(l.set) == 0 && len(l.remove) == 0 }

// Apply returns the labels after the change.
func (l *LabelFlags) Apply(before map[string]string) map[string]string {
	after := make(map[string]string)
	maps.Copy(after, before)
	for _, key := range l.remove {
		delete(after, key)
	}
	maps.Copy(after, l.set)
	return after
}

// AddQueryFlags adds the flags that filter and order a list.
func AddQueryFlags(cmd *cobra.Command, query *dpareto.Query) {
	cmd.Flags().StringVar(&query.Filter, "filter", "", "condition on the listed items, such as 'create_time > \"2026-11-01T00:00:00Z\"'")
	cmd.Flags().StringVar(&query.OrderBy, "order-by", "", "fields to order by, such as 'create_time desc'")
}
