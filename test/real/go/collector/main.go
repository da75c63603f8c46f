// An OpenTelemetry Collector that receives OTLP over HTTP and writes each batch of spans to standard output as OTLP/JSON.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

var lines = component.MustNewType("lines")

// newLines returns an exporter that prints each batch as one line.
func newLines() exporter.Factory {
	var one sync.Mutex
	push := func(_ context.Context, traces ptrace.Traces) error {
		text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
		if err != nil {
			return err
		}
		one.Lock()
		defer one.Unlock()
		_, err = os.Stdout.Write(append(bytes.TrimSpace(text), '\n'))
		return err
	}
	create := func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
		return exporterhelper.NewTraces(ctx, set, cfg, push)
	}
	return exporter.NewFactory(lines, func() component.Config { return &struct{}{} },
		exporter.WithTraces(create, component.StabilityLevelStable))
}

const config = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "%s"}}}}
exporters: {lines: {}}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [lines]}}
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: collector HOST:PORT")
		os.Exit(2)
	}
	factories := func() (otelcol.Factories, error) {
		receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
		if err != nil {
			return otelcol.Factories{}, err
		}
		exporters, err := otelcol.MakeFactoryMap[exporter.Factory](newLines())
		// Without telemetry about the Collector itself, which the tests do not use.
		own := telemetry.NewFactory(func() component.Config { return &struct{}{} })
		return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: own}, err
	}
	settings := otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{fmt.Sprintf(config, os.Args[1])},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	}
	collector, err := otelcol.NewCollector(settings)
	if err == nil {
		err = collector.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
