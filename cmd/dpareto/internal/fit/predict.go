package fit

import (
	"encoding/csv"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/clients/go/trainer/fitted"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// PredictCommand returns the command predict.
func PredictCommand(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "predict FOLDER FILE",
		Short: "Predict with a trained model",
		Long: `Predicts the label of every row of a file with a model that "dpareto train" wrote, and prints CSV in
the order of the rows. It has the label and, unless the model is a support vector machine or a
regression, the probability of every label. The file needs the columns of the features, in any
order; it is read by the schema in the model's card.`,
		Example: "  dpareto predict model new.csv > predictions.csv",
		Args:    command.Args(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := fitted.Read(args[0])
			if err != nil {
				return err
			}
			rows, err := table.Features(args[1], m.Card.Schema)
			if err != nil {
				return err
			}
			values := m.Card.Schema.Label.Values
			predictions := m.Predict(rows)
			w := csv.NewWriter(env.Stdout)
			header := []string{m.Card.Schema.Label.Column}
			if len(predictions) > 0 && predictions[0].Probabilities != nil {
				for _, value := range values {
					header = append(header, "p_"+value)
				}
			}
			if err := w.Write(header); err != nil {
				return err
			}
			for _, p := range predictions {
				var record []string
				if len(values) == 0 {
					record = []string{strconv.FormatFloat(p.Value, 'g', 6, 64)}
				} else {
					record = []string{values[p.Class]}
				}
				for _, x := range p.Probabilities {
					record = append(record, strconv.FormatFloat(x, 'g', 6, 64))
				}
				if err := w.Write(record); err != nil {
					return err
				}
			}
			w.Flush()
			return w.Error()
		},
	}
}
