/**
 * Ten thousand requests whose paths, User-Agents and users try to corrupt the output about them (A53, A54), with tokens
 * in all places where clients put tokens (A55). Checks what the log, the metrics, the API, a support bundle, the event
 * stream and the responses show.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { eventKinds, paceMs } from "../../../src/events/event-kinds.ts";
import type { Entry } from "../../../src/events/journal.ts";
import { Journal } from "../../../src/events/journal.ts";
import { Log } from "../../../src/ops/admin/events/log.ts";
import { adminLimits } from "../../../src/ops/admin/http/limits.ts";
import { bundle } from "../../../src/ops/cli/bundle/bundle.ts";
import { KeptScreen } from "../../support/api-server.ts";
import { manualClock } from "../../support/clock.ts";
import { type Frame, headers } from "../../support/h2-frames.ts";
import { jwt } from "../../support/jwt.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { RawH2 } from "../../support/raw-h2.ts";
import { Target } from "../../support/target.ts";
import { within } from "../../support/within.ts";

const test = suite("attacks/whole/hostile-names");

const sockets = 100;
const each = 100;
/** Base64 text that no other encoded data in this test contains. */
const planted = "cGxhbnRlZC10b2tlbi1v";
/** Text that a terminal, a JSON parser, Prometheus or a browser might interpret. */
const spoilers = [
  `"},"err":"forged`,
  "%0a%0dforged=line",
  "<img%20src=x%20onerror=alert(1)>",
  `"}%20forged{label="`,
  "\u00e2\u0080\u00a8forged\u00c2\u0085",
  "__proto__/constructor",
  "x".repeat(1500),
  "../../../../etc/passwd%00",
] as const;

let target: Target;
let proxy: TestProxy;
const clients: RawH2[] = [];

test.before(async () => {
  target = await Target.start();
  proxy = await startProxy({ backends: 0, targets: [target], extra: "logging: {accessLog: All}\n" });
});
test.after(async () => {
  for (const client of clients) client.destroy();
  await proxy.stop();
  target.stop();
});

/**
 * Returns the HEADERS of request `number`: its path, User-Agent and user are unique, and every place that may hold a
 * token has one.
 */
function hostile(id: number, number: number): Frame {
  const spoiler = spoilers[number % spoilers.length] ?? "";
  const token = `${planted}${number}`;
  const user = jwt({ sub: `user-${number}${spoiler}\u001b[31m\n`, "kubernetes.io": { namespace: spoiler } });
  const isWatch = number % 1000 === 0;
  const path = `/apis/g${number}/v1/namespaces/n${number}/r${number}/${spoiler}?token=${token}&access_token=${token}${isWatch ? "&watch=1" : ""}`;
  const credential = [
    `Bearer ${token}`,
    `Bearer ${user.split(".").slice(0, 2).join(".")}.${token}`,
    `Basic ${token}`,
  ];
  return headers(id).get(
    path,
    ["user-agent", `agent-${number}${spoiler} Bearer ${token}`],
    ["authorization", credential[number % 3] ?? ""],
    ["cookie", `session=${token}`],
    ["proxy-authorization", `Bearer ${token}`],
    ["x-remote-user", token],
    ["impersonate-extra-scopes", token],
    ["sec-websocket-protocol", `base64url.bearer.authorization.k8s.io.${token}`],
    ["audit-id", `audit-${number}${spoiler}`],
    // An invalid field value makes the proxy reset the stream. The value must not appear in the log either.
    ...(number % 20 === 7 ? ([["x-broken", `${token}\r\nforged: line`]] as const) : []),
  );
}

/** Resolves with the number of responses, and the number of resets. */
async function attack(round: number): Promise<readonly [answered: number, reset: number]> {
  const client = await RawH2.connect(proxy);
  clients.push(client);
  client.send(...Array.from({ length: each }, (_, at) => hostile(2 * at + 1, round * each + at)));
  const answered = (): number => client.count(/^HEADERS /);
  const reset = (): number => client.count(/^RST_STREAM /);
  await client.until("all answers", () => answered() + reset() >= each, 60_000);
  return [answered(), reset()];
}

/** Returns every page of every list of the API. */
async function listed(): Promise<string> {
  const texts: string[] = [];
  for (const list of ["incidents", "backends", "watches", "clients", "leases", "certificates"]) {
    for (let offset = 0, total = 1; offset < total; offset += adminLimits.apiPageMost) {
      const url = `http://${proxy.running.apiAddress}/api/v1/${list}?limit=${adminLimits.apiPageMost}&offset=${offset}`;
      const text = await (await fetch(url)).text();
      ({ total } = JSON.parse(text) as { total: number });
      texts.push(text);
    }
  }
  for (const path of ["api/v1/stats", "statusz", "flagz", "configz", "version"])
    texts.push(await (await fetch(`http://${proxy.running.apiAddress}/${path}`)).text());
  return texts.join("\n");
}

/** Returns what `watchkeeper bundle` writes, without and with `--names`. */
async function bundled(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-hostile-"));
  const { apiAddress, adminAddress } = proxy.running;
  const texts: string[] = [];
  for (const names of [[], ["--names"]]) {
    const to = join(folder, `b${names.length}`);
    const screen = new KeptScreen({ WATCHKEEPER_ADMIN: apiAddress });
    const code = await bundle(["--metrics", adminAddress, "--to", to, ...names], screen);
    assert.is(code, 0, screen.complaints);
    for (const file of readdirSync(to)) texts.push(readFileSync(join(to, file), "utf8"));
  }
  rmSync(folder, { recursive: true });
  return texts.join("\n");
}

/** Returns the log lines for these entries at the most detailed level. */
function logged(entries: readonly Entry[], format: "JSON" | "Text"): string[] {
  const lines: string[] = [];
  const clock = manualClock();
  const journal = new Journal(clock);
  const out = { write: (text: string) => void lines.push(text), on() {}, writableLength: 0 };
  const log = new Log(journal, { out, clock, level: "Debug", format, accessLog: "All" });
  for (const entry of entries) {
    clock.advance(paceMs);
    journal.write(entry);
  }
  log.stop();
  assert.is(lines.length, entries.length);
  return lines;
}

/** Collects the output of the event stream until `stop` is called. */
function followed(): { readonly stop: () => Promise<string> } {
  const abort = new AbortController();
  let text = "";
  const read = async (): Promise<void> => {
    const { body } = await fetch(`http://${proxy.running.apiAddress}/api/v1/events`, {
      signal: abort.signal,
    });
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString();
  };
  const reading = read().catch(() => undefined); // ends when it is aborted
  return {
    async stop() {
      abort.abort();
      await reading;
      return text;
    },
  };
}

function seriesIn(metrics: string): number {
  return metrics.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
}

test("of ten thousand hostile names none spoils a line, none makes a series too many, and no token is told", async () => {
  const events = followed();
  let [answered, reset] = [0, 0];
  for (let round = 0; round < sockets; round += 1) {
    const [more, broken] = await attack(round);
    answered += more;
    reset += broken;
  }
  assert.is(answered + reset, sockets * each);
  // With no backend left, the proxy itself refuses the last hundred requests.
  target.stop();
  const [refused] = await attack(sockets);
  answered += refused;
  assert.ok(answered >= 9000, `${answered} answered`);
  const metrics = await (await fetch(`http://${proxy.running.adminAddress}/metrics`)).text();
  const api = await listed();
  const sent = await bundled();
  // The end of the watches is logged too.
  for (const client of clients) client.destroy();
  const over = (): number => proxy.entries.filter(({ kind }) => kind === "request.ended").length;
  const awaited = async (): Promise<void> => {
    while (over() < answered) await sleep(50);
  };
  await within(20_000, "the last line", awaited());
  const streamed = await events.stop();

  const series = seriesIn(metrics);
  const lines = logged(proxy.entries, "JSON");
  const texts = logged(proxy.entries, "Text");
  console.log(`figure: ${answered} answered, ${reset} broken off: ${series} series, ${lines.length} lines`);
  assert.ok(series <= 2000, `${series} series`);
  assert.is(over(), answered, "one line each");
  for (const line of [...lines, ...texts]) assert.match(line, /^[\x20-\x7e]{1,8192}\n$/);
  for (const line of lines) assert.is(typeof JSON.parse(line).msg, "string");
  assert.not.ok(
    lines.some((line) => "forged" in JSON.parse(line)),
    "no field of theirs",
  );
  const told = streamed.split("\n").filter((line) => line.startsWith("data: "));
  assert.ok(told.length >= eventKinds["request.ended"].pace.most, `${told.length} events`);
  for (const line of told) assert.is(typeof JSON.parse(line.slice(6)).kind, "string");
  const answers = [...(clients.at(-1)?.texts.values() ?? [])];
  assert.is(answers.filter((text) => text.includes('"kind":"Status"')).length, refused, answers[0]);
  for (const [where, text] of Object.entries({
    metrics,
    api,
    sent,
    streamed,
    log: lines.join(""),
    text: texts.join(""),
    answers: answers.join("\n"),
  })) {
    const at = text.indexOf(planted);
    assert.ok(at < 0, `${where}: ${text.slice(Math.max(0, at - 200), at + 100)}`);
  }
});

test.run();
