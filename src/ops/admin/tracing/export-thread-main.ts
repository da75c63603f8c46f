/** The main file of the export thread (trace-exporter.ts): exports batches of traces with OpenTelemetry's SDK. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { TraceRecord } from "../../../proxy/observe/request-trace.ts";
import { tracingLimits } from "./limits.ts";
import { spansOf } from "./spans.ts";
import type { Exported, ExportOrder } from "./trace-exporter.ts";

const { endpoint, version }: ExportOrder = workerData;
// With the value "0", this variable would turn off the verification of the collector. The thread has its own copy of the
// environment. An option of the exporter would replace the CA and certificate that the OTEL_EXPORTER_* variables name.
Reflect.deleteProperty(process.env, "NODE_TLS_REJECT_UNAUTHORIZED");
const exporter = new OTLPTraceExporter({ url: endpoint, timeoutMillis: tracingLimits.exportMs });
const resource = resourceFromAttributes({
  "service.name": "watchkeeper",
  "service.version": version,
  "service.instance.id": `${hostname()}-${process.pid}`,
});

/** Returns why an export failed; "" if it succeeded. The SDK passes an error to the callback of each failed export. */
function reasonOf(error: Error | undefined): string {
  return error === undefined ? "" : error.message || "The export failed";
}

function answer(outcome: Exported): void {
  parentPort?.postMessage(outcome, []);
}

parentPort?.on("message", (text: string) => {
  const records: readonly TraceRecord[] = JSON.parse(text);
  const spans = records.flatMap((record) => spansOf(record, resource, () => randomBytes(8).toString("hex")));
  exporter.export(spans, ({ error }) => {
    answer({
      spans: spans.length,
      reason: reasonOf(error),
    });
  });
});
