/** Tests the export of traces with the real thread and OpenTelemetry's SDK. The collector is this test's own. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { tracingLimits } from "../../../../src/ops/admin/tracing/limits.ts";
import { TraceExporter } from "../../../../src/ops/admin/tracing/trace-exporter.ts";
import { Collector, traceOf } from "../../../support/trace.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/tracing/trace-exporter");

const collectors: Collector[] = [];
const exporters: TraceExporter[] = [];
test.after.each(async () => {
  for (const collector of collectors.splice(0)) collector.close();
  for (const exporter of exporters.splice(0)) await within(20_000, "the exporter to stop", exporter.stop());
});

type Scene = {
  readonly collector: Collector;
  readonly exporter: TraceExporter;
  readonly endpoint: string;
  readonly failures: () => Entry[];
};

async function scene(thread?: URL): Promise<Scene> {
  const collector = new Collector();
  collectors.push(collector);
  const journal = new Journal(wallClock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const exporter = new TraceExporter({ clock: wallClock, journal, ...(thread && { thread }) });
  exporters.push(exporter);
  const endpoint = await collector.open();
  exporter.configure(endpoint);
  return {
    collector,
    exporter,
    endpoint,
    failures: () => entries.filter(({ kind }) => kind === "tracing.failed"),
  };
}

test("traces reach the collector as OTLP, with their Audit-IDs, and a stop waits for the last ones", async () => {
  const { collector, exporter } = await scene();
  for (const auditId of ["a-1", "a-2", "a-3"]) exporter.take(traceOf({ auditId }));
  await exporter.stop();
  assert.is(collector.collected.length, 1, "one batch");
  const [{ path, type, body } = { path: "", type: "", body: "" }] = collector.collected;
  assert.equal([path, type], ["/v1/traces", "application/x-protobuf"]);
  for (const word of ["a-1", "a-2", "a-3", "watchkeeper", "/api/v1/pods"])
    assert.ok(body.includes(word), word);
  assert.equal(exporter.counts, { exported: 3, failed: 0, dropped: 0 });
});

test("a few traces are sent after a second, without a stop", async () => {
  const { collector, exporter } = await scene();
  exporter.take(traceOf());
  await collector.batch();
  assert.is(collector.collected.length, 1);
});

test("if the collector refuses the traces, they count as failed, and the reason is journaled once", async () => {
  const { collector, exporter, failures, endpoint } = await scene();
  collector.status = 400;
  for (let times = 0; times < 2 * tracingLimits.batch; times++) exporter.take(traceOf());
  await exporter.stop();
  assert.is(exporter.counts.failed, 2 * tracingLimits.batch);
  assert.is(failures().length, 1);
  assert.match(JSON.stringify(failures()), endpoint);
});

test("if the collector does not answer, at most so many traces wait, and the others are dropped", async () => {
  const { collector, exporter } = await scene();
  collector.isSilent = true;
  const most = tracingLimits.unanswered * tracingLimits.batch + tracingLimits.waiting;
  for (let times = 0; times < most + 10; times++) exporter.take(traceOf());
  assert.equal(exporter.counts, { exported: 0, failed: 0, dropped: 10 });
  const started = performance.now();
  await exporter.stop();
  assert.ok(performance.now() - started < 10 * tracingLimits.stopMs, "a stop does not wait for it");
  const { exported, failed, dropped } = exporter.counts;
  assert.equal([exported, failed + dropped], [0, most + 10], "each span is counted once");
});

test("a thread that dies loses its batch only: a new one is started later", async () => {
  const dead = new URL("data:text/javascript,throw new Error('the thread is dead')");
  const { exporter, failures } = await scene(dead);
  for (let times = 0; times < tracingLimits.batch; times++) exporter.take(traceOf());
  for (let times = 0; times < 500 && failures().length === 0; times++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.match(JSON.stringify(failures()), "the thread is dead");
  assert.is(exporter.counts.failed, tracingLimits.batch);
  exporter.take(traceOf());
  assert.is(exporter.counts.failed, tracingLimits.batch, "no thread is started at once");
});

test("while tracing is off, nothing is kept or sent; another endpoint gets the traces that follow", async () => {
  const { collector, exporter } = await scene();
  exporter.configure("");
  exporter.take(traceOf());
  assert.equal(exporter.counts, { exported: 0, failed: 0, dropped: 1 });
  const other = new Collector();
  collectors.push(other);
  exporter.configure(await other.open());
  exporter.take(traceOf({ auditId: "later" }));
  await exporter.stop();
  assert.equal([collector.collected.length, other.collected.length], [0, 1]);
  assert.ok(other.collected[0]?.body.includes("later"));
});

test.run();
