#!/bin/sh
# Creates the user of the service. The service is not started: it needs a certificate and tokens first
# (docs/reference/operations.md).
set -e
if ! getent passwd dpareto >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/dpareto --shell /usr/sbin/nologin dpareto
fi
