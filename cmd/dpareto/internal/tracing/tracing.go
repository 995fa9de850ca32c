// Package tracing sends the spans of a server or an agent to an OpenTelemetry collector.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// flushPatience is how long the last spans may take to be delivered.
const flushPatience = 5 * time.Second

// AddFlag adds the flag for the address of the collector.
func AddFlag(flags *pflag.FlagSet, endpoint *string) {
	flags.StringVar(endpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector that gets traces over gRPC, such as http://127.0.0.1:4317; "+
		"none by default. The standard OTEL_* variables also work")
}

// Check returns an error if an endpoint is not the URL of a collector. OpenTelemetry would
// ignore it silently.
func Check(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("otlp-endpoint: %q is no URL such as http://127.0.0.1:4317", endpoint)
	}
	return nil
}

// wantsTraces reports whether the standard variables of OpenTelemetry ask for traces.
func wantsTraces() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" {
		return exporter == "otlp"
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start returns a provider of tracers that sends spans to an endpoint, "" for the one that
// the environment names, and a function that delivers the last ones. The provider is nil if
// neither names an endpoint. Spans that cannot be delivered are logged and lost.
func Start(ctx context.Context, logger *slog.Logger, endpoint, service string) (provider trace.TracerProvider, stop func(), err error) {
	if endpoint == "" && !wantsTraces() {
		return nil, func() {}, nil
	}
	if err := Check(endpoint); err != nil {
		return nil, nil, command.Usage(err)
	}
	var options []otlptracegrpc.Option
	if endpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", command.Version())),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	undelivered := func(err error) { logger.Warn("traces are lost", "error", err) }
	otel.SetErrorHandler(otel.ErrorHandlerFunc(undelivered))
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return spans, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPatience)
		defer cancel()
		if err := spans.Shutdown(patience); err != nil {
			undelivered(err)
		}
	}, nil
}
