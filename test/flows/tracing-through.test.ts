/** A whole proxy exports traces to a collector, and reloads turn that off and on. */
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems } from "../../src/ops/config/problem.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { Collector } from "../support/trace.ts";

const test = suite("flows/tracing-through");

const collectors: Collector[] = [];
let proxy: TestProxy | undefined;
test.after.each(async () => {
  await proxy?.stop();
  proxy = undefined;
  for (const collector of collectors.splice(0)) collector.close();
});

async function collect(): Promise<{ collector: Collector; section: string }> {
  const collector = new Collector();
  collectors.push(collector);
  const endpoint = await collector.open();
  return { collector, section: `tracing: {endpoint: "${endpoint}", samplingRatePerMillion: 1000000}\n` };
}

function get({ port, ca }: TestProxy, path: string, headers: Readonly<Record<string, string>> = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request({ host: "localhost", port, path, ca, headers, agent: false }, (response) => {
    response.resume().on("end", () => resolve(response.statusCode ?? 0));
  });
  sent.on("error", reject).end();
  return promise;
}

/** Reloads the proxy's configuration with `section` as its section `tracing`. */
async function reload({ running, directory }: TestProxy, section: string): Promise<void> {
  const file = join(directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8").replace(/^tracing: .*\n/m, section);
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error("The configuration has problems");
  assert.equal(await running.reload(config), []);
}

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("a request's spans reach the collector with its Audit-ID, and /metrics counts them", async () => {
  const { collector, section } = await collect();
  proxy = await startProxy({ extra: section });
  assert.is(await get(proxy, "/api?token=geheim-geheim", { "audit-id": "join-me", traceparent }), 200);
  await collector.batch();
  const [{ body } = { body: "" }] = collector.collected;
  assert.ok(body.includes("join-me"));
  // The trace ID and the span ID of the client, as bytes.
  assert.ok(Buffer.from(body, "latin1").includes(Buffer.from("0af7651916cd43dd8448eb211c80319c", "hex")));
  assert.ok(Buffer.from(body, "latin1").includes(Buffer.from("b7ad6b7169203331", "hex")));
  assert.not(body.includes("geheim"));
  const scrape = async (): Promise<string> =>
    (await fetch(`http://${proxy?.running.adminAddress}/metrics`)).text();
  // A span for the request, one for its attempt, and possibly others for waits.
  const exported = /^watchkeeper_trace_spans_total\{result="exported"\} [2-9]$/m;
  let text = await scrape();
  for (let times = 0; times < 100 && !exported.test(text); times++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    text = await scrape();
  }
  assert.match(text, exported);
  assert.match(text, 'watchkeeper_trace_spans_total{result="dropped"} 0\n');
});

test("a reload turns traces off, on, and to another collector", async () => {
  const first = await collect();
  const second = await collect();
  proxy = await startProxy({ extra: first.section });
  await reload(proxy, "tracing: {endpoint: 'http://127.0.0.1:1/v1/traces'}\n");
  await get(proxy, "/not-sampled");
  await reload(proxy, second.section);
  await get(proxy, "/second", { "audit-id": "at-the-second" });
  await second.collector.batch();
  assert.ok(second.collector.collected[0]?.body.includes("at-the-second"));
  assert.not(second.collector.collected[0]?.body.includes("not-sampled"));
  assert.equal(first.collector.collected, []);
});

test("a proxy that stops sends its last traces", async () => {
  const { collector, section } = await collect();
  const stopped = await startProxy({ extra: section });
  await get(stopped, "/last", { "audit-id": "the-last" });
  await stopped.stop();
  assert.ok(collector.collected[0]?.body.includes("the-last"));
});

test.run();
