/** One anonymous client causes as many log lines as it can; the log and the event stream get a limited number. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { eventKinds } from "../../../src/events/event-kinds.ts";
import { fieldsOf } from "../../../src/ops/admin/events/entry-fields.ts";
import { headers } from "../../support/h2-frames.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/log-flood");

let proxy: TestProxy;
test.before(async () => {
  proxy = await startProxy({ backends: 1 });
});
test.after(() => proxy.stop());

test("the honest twin: a client that makes ten mistakes has ten lines", async () => {
  const client = await RawH2.connect(proxy);
  client.send(
    ...Array.from({ length: 10 }, (_, at) => headers(2 * at + 1).get("/api", ["x-broken", "a\r\nb"])),
  );
  await client.until("ten resets", () => client.count(/^RST_STREAM /) >= 10, 20_000);
  assert.is(proxy.paced.filter(({ kind }) => kind === "request.refused").length, 10);
  client.destroy();
});

test("ten connections of one client with 200 malformed requests each: 60 log lines at most, every request counted", async () => {
  for (let round = 0; round < 10; round += 1) {
    // oxlint-disable-next-line no-await-in-loop
    const client = await RawH2.connect(proxy);
    client.send(
      ...Array.from({ length: 200 }, (_, at) => headers(2 * at + 1).get("/api", ["x-broken", "a\r\nb"])),
    );
    // oxlint-disable-next-line no-await-in-loop
    await client.until("resets", () => client.count(/^RST_STREAM /) >= 200 || client.isClosed, 20_000);
    client.destroy();
  }
  type Entries = TestProxy["entries"];
  const causedOf = (all: Entries): Entries => all.filter(({ kind }) => eventKinds[kind].pace !== undefined);
  const [caused, lines] = [causedOf(proxy.entries), causedOf(proxy.paced)];
  const bytes = (all: Entries): number =>
    all.reduce((sum, one) => sum + JSON.stringify(fieldsOf(one)).length, 0);
  console.log(
    `figure: ${caused.length} entries, ${bytes(caused)} bytes: ${lines.length} lines, ${bytes(lines)} bytes`,
  );
  assert.ok(caused.length > 500, `${caused.length} entries`);
  assert.ok(lines.length <= 60, `${lines.length} lines`);
  const metrics = await (await fetch(`http://${proxy.running.adminAddress}/metrics`)).text();
  const [, counted = "0"] = /^watchkeeper_requests_refused_total\{.*\} (\d+)$/m.exec(metrics) ?? [];
  assert.is(Number(counted), proxy.entries.filter(({ kind }) => kind === "request.refused").length);
  const abort = new AbortController();
  const { body } = await fetch(`http://${proxy.running.apiAddress}/api/v1/events`, {
    headers: { "last-event-id": "1-1" },
    signal: abort.signal,
  });
  let text = "";
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes("request.refused")) break;
  }
  abort.abort();
  assert.match(text, "event: listener.opened");
});

test.run();
