// SPDX-License-Identifier: Apache-2.0

// Reads an ExportProfilesServiceRequest as an OpenTelemetry Collector does, with its own decoder, and prints it with its debug
// exporter: otlpread FILE. The first line is `samples N`, then the exporter's text.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configtelemetry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.uber.org/zap"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "otlpread:", err)
		os.Exit(1)
	}
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	check(err)
	request := pprofileotlp.NewExportRequest()
	check(request.UnmarshalProto(data))
	fmt.Println("samples", request.Profiles().SampleCount())

	factory := debugexporter.NewFactory().(xexporter.Factory)
	config := factory.CreateDefaultConfig().(*debugexporter.Config)
	config.Verbosity = configtelemetry.LevelDetailed
	settings := exporter.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.Logger = zap.Must(zap.NewDevelopment(zap.IncreaseLevel(zap.ErrorLevel)))
	config.UseInternalLogger = false
	printer, err := factory.CreateProfiles(context.Background(), settings, config)
	check(err)
	check(printer.Start(context.Background(), componenttest.NewNopHost()))
	check(printer.ConsumeProfiles(context.Background(), request.Profiles()))
	check(printer.Shutdown(context.Background()))
}
