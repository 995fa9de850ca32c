package study

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// Command returns the command study, with more commands from elsewhere.
func Command(env *command.Env, more ...*cobra.Command) *cobra.Command {
	group := command.Group("study", "Create, show, change and delete studies",
		`A study is one question about a trade-off: parameters, metrics, and all trials spent on it.`,
		initCommand(env), createCommand(env), getCommand(env), listCommand(env), watchCommand(env), pageCommand(env),
		updateCommand(env), pauseCommand(env), resumeCommand(env), reaccountCommand(env), deleteCommand(env))
	group.AddCommand(more...)
	return group
}

func createCommand(env *command.Env) *cobra.Command {
	var id string
	var validateOnly bool
	cmd := remote.Command(env, &cobra.Command{
		Use:   "create FILE",
		Short: "Create a study from a YAML or JSON file",
		Long: `Creates a study from a YAML or JSON file, or from standard input if FILE is "-".

The file has the fields of the message dpareto.v1.Study, plus study_id and ledgers. The ledgers
are created first, unless they exist with the same fields (see "dpareto ledger create"). They cannot
be deleted, so the server checks the study before it creates them; it checks their budgets afterwards. Values of enums may be written short: "scale: LOG" for SCALE_LOG.
Creating the same study again changes nothing; the same id with another spec is an error that
names the differences.

"dpareto study get ID --output json" prints a study as a file from which it can be created
again under another id.`,
		Example: `  dpareto study create cmd/dpareto/studies/svt.yaml
  dpareto study create --validate-only cmd/dpareto/studies/adult-private.yaml
  dpareto study get svt --output json | dpareto study create --id svt-again -`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		path := call.Args[0]
		file, err := readFile(env, path)
		if err != nil {
			return err
		}
		if id != "" {
			file.ID = id
		}
		if file.ID == "" {
			return command.Usagef("%s: has no study_id; add one, or give --id", command.SourceName(path))
		}
		action := "create studies/" + file.ID
		if validateOnly {
			if err := file.Validate(ctx, call.Client); err != nil {
				return &remote.CallError{Action: action, Err: err}
			}
			env.Logger.Info("valid: nothing was created", "study", "studies/"+file.ID)
			return nil
		}
		study, err := file.Create(ctx, call.Client, env.Logger)
		if err != nil {
			return &remote.CallError{Action: action, Err: err}
		}
		if url, err := remote.PageURL(ctx, call.Client, study); err == nil && url != "" { // the study is created in any case
			env.Sayf("page: %s\n", url)
		}
		if err := awaitPreparation(ctx, env, study); err != nil {
			return err
		}
		return describe(ctx, call, study)
	})
	cmd.Flags().StringVar(&id, "id", "", "id of the study, in place of the file's study_id")
	cmd.Flags().BoolVar(&validateOnly, "validate-only", false, "check the study on the server, without creating it or its ledgers")
	return cmd
}

// awaitPreparation waits until a new study has its publication: most have it at once, if any.
func awaitPreparation(ctx context.Context, env *command.Env, handle *dpareto.Study) error {
	const interval = 200 * time.Millisecond
	for isFirst := true; ; isFirst = false {
		study, err := handle.Get(ctx)
		if err != nil || study.GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING {
			return err
		}
		if isFirst {
			env.Logger.Info("the server computes the cost of the study, also if you interrupt this", "study", study.GetName())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

// readFile reads a study from a file, or from standard input.
func readFile(env *command.Env, path string) (*studyfile.File, error) {
	content, err := env.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, command.Usagef("%s: %w", command.SourceName(path), err)
	}
	return file, nil
}

// describe prints a study.
func describe(ctx context.Context, call *remote.Call, handle *dpareto.Study) error {
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	return view.Print(call.Out, view.Study(study), study)
}

func getCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:     "get STUDY",
		Short:   "Show a study",
		Example: "  dpareto study get svt --output json",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		return describe(ctx, call, call.Handle(call.Args[0]))
	})
}

func listCommand(env *command.Env) *cobra.Command {
	var query dpareto.Query
	cmd := remote.Command(env, &cobra.Command{
		Use:   "list",
		Short: "List studies",
		Long: `Lists all studies, or those that meet a filter in the syntax of AIP-160. Fields are name,
uid, display_name, description, labels.KEY, state, algorithm, trainer, create_time,
update_time, revision and trial_counts.STATE.`,
		Example: `  dpareto study list --output csv
  dpareto study list --filter 'state = ACTIVE AND labels.team = "vision"' --order-by 'update_time desc'`,
		Args: command.NoArgs,
	}, func(ctx context.Context, call *remote.Call) error {
		studies, err := remote.Collect(call.FindStudies(ctx, query))
		if err != nil {
			return err
		}
		return view.PrintAll(call.Out, view.Studies(studies), studies)
	})
	remote.AddQueryFlags(cmd, &query)
	return cmd
}

func deleteCommand(env *command.Env) *cobra.Command {
	var yes bool
	cmd := remote.Action(env, &cobra.Command{
		Use:   "delete STUDY",
		Short: "Delete a study with all its trials and releases",
		Long: `Deletes a study with all its trials and releases, for good. Its charges stay in the
ledgers. On a terminal it asks for the id of the study; elsewhere --yes is required.

"dpareto export --study STUDY" keeps a copy that can be imported again.`,
		Example: "  dpareto study delete svt\n  dpareto study delete svt --yes",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		study := call.Handle(call.Args[0])
		lost, err := lostWith(ctx, call, study)
		if err != nil && status.Code(err) != codes.PermissionDenied { // which the deletion will be told, and the audit log
			return &remote.CallError{Action: "delete " + study.Name(), Err: err}
		}
		if lost != "" {
			env.Sayf("%s has %s\n", study.Name(), lost)
		}
		if !yes {
			if err := env.Confirm(ctx, study.Name(), view.ID(study.Name())); err != nil {
				return err
			}
		}
		if err := study.Delete(ctx); err != nil {
			return err
		}
		env.Logger.Info("deleted", "study", study.Name())
		return nil
	})
	command.YesFlag(cmd, &yes)
	return cmd
}

// lostWith says what goes with a study that was published from or charged for: "" for others.
func lostWith(ctx context.Context, call *remote.Call, handle *dpareto.Study) (string, error) {
	resp, err := call.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: handle.Name()})
	if err != nil {
		return "", err
	}
	releases, err := remote.Pages(func(token string) ([]*dparetov1.Release, string, error) {
		resp, err := call.Releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: handle.Name(), PageToken: token})
		return resp.GetReleases(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return "", err
	}
	spec := resp.GetStudy().GetSpec()
	charged := slices.DeleteFunc([]string{spec.GetTestLedger(), spec.GetTrainLedger()}, func(name string) bool { return name == "" })
	if spec.GetPrivateMode() == nil && spec.GetRandomStopping() == nil && len(releases) == 0 {
		return "", nil // not charged yet
	}
	text := show.Count(int64(len(releases)), "release") + ", which are deleted with it"
	if len(charged) > 0 {
		text += "; what it was charged to " + strings.Join(charged, " and ") + " stays"
	}
	return text, nil
}

func pauseCommand(env *command.Env) *cobra.Command {
	return actionCommand(env, "pause", "paused", "Stop handing out trials of a study",
		`Hands out no trials of a study until "dpareto study resume". Workers finish the trials that
they hold, and then wait.`,
		func(ctx context.Context, study *dpareto.Study) error {
			_, err := study.Pause(ctx)
			return err
		})
}

func resumeCommand(env *command.Env) *cobra.Command {
	return actionCommand(env, "resume", "resumed", "Hand out trials of a paused study again", "Hands out trials of a paused study again.",
		func(ctx context.Context, study *dpareto.Study) error {
			_, err := study.Resume(ctx)
			return err
		})
}

// actionCommand returns a command that acts on a study and logs that it did.
func actionCommand(env *command.Env, name, done, summary, text string, act func(context.Context, *dpareto.Study) error) *cobra.Command {
	return remote.Action(env, &cobra.Command{
		Use:     name + " STUDY",
		Short:   summary,
		Long:    text,
		Example: "  dpareto study " + name + " svt",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		study := call.Handle(call.Args[0])
		if err := act(ctx, study); err != nil {
			return err
		}
		env.Logger.Info(done, "study", study.Name())
		return nil
	})
}
