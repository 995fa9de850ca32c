package remote

import (
	"context"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// PageURL returns the URL of a study's page, "" if the server has no page that this machine can reach.
func PageURL(ctx context.Context, client *dpareto.Client, study *dpareto.Study) (string, error) {
	info, err := client.Admin.GetServerInfo(ctx, new(dparetov1.GetServerInfoRequest))
	if err != nil || info.GetPageUrl() == "" {
		return "", err
	}
	return info.GetPageUrl() + study.Name(), nil
}
