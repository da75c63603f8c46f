import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { eventKinds, paceMs } from "../../src/events/event-kinds.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { clientsCounted } from "../../src/events/pacer.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("events/pacer");

function paced() {
  const clock = manualClock();
  const journal = new Journal(clock);
  const counted: Entry[] = [];
  const told: Entry[] = [];
  journal.subscribe((entry) => counted.push(entry));
  journal.subscribePaced((entry) => told.push(entry));
  return { clock, journal, counted, told };
}

const kinds = Object.keys(eventKinds).filter((kind) => kind !== "entries.omitted") as Entry["kind"][];
/** An entry of any kind; only its kind and its client matter to the pacer. */
const entryOf = (kind: Entry["kind"], client: string): Entry => ({ kind, client }) as unknown as Entry;

test("10,000 entries in a second of each kind that clients can cause become a limited number and one sum", () => {
  for (const kind of kinds) {
    const { pace } = eventKinds[kind];
    if (pace === undefined) continue;
    const { clock, journal, counted, told } = paced();
    for (let at = 0; at < 10_000; at += 1) {
      journal.write(entryOf(kind, `10.0.${at % 50}.1`));
      if (at % 10 === 0) clock.advance(1);
    }
    clock.advance(paceMs);
    const whole = told.filter((entry) => entry.kind === kind).length;
    assert.is(whole, pace.most, kind);
    const [sum, ...more] = told.filter((entry) => entry.kind === "entries.omitted");
    assert.equal(
      [sum?.kind === "entries.omitted" && [sum.of, sum.count], more],
      [[kind, 10_000 - whole], []],
    );
    assert.is(counted.length, 10_000, `${kind}: counters get every entry`);
  }
});

test("entries of kinds that no client can cause all reach the log and the event stream", () => {
  for (const kind of kinds.filter((one) => eventKinds[one].pace === undefined)) {
    const { journal, told } = paced();
    for (let at = 0; at < 2000; at += 1) journal.write(entryOf(kind, "10.0.0.1"));
    assert.is(told.length, 2000, kind);
  }
});

test("each kind that is written where requests and connections of clients are handled has a limit", () => {
  const own = new Set(["listener.opened", "listener.lost"]);
  const files = [
    "proxy/downstream/downstream.ts",
    "proxy/downstream/h1-connection.ts",
    "proxy/downstream/listen.ts",
    "proxy/overload/load-shedding.ts",
    "proxy/overload/buffer-limiter.ts",
    "proxy/request/failures.ts",
    "proxy/request/access-log.ts",
    "proxy/limits/request-limits.ts",
    "proxy/request/avoided-apis.ts",
    "proxy/observe/ledger-tap.ts",
    "proxy/observe/replay-loop-detector.ts",
    "proxy/observe/stale-read-guard.ts",
    "proxy/tunnel/upgrade-handler.ts",
    "proxy/tunnel/passthrough.ts",
    "proxy/tunnel/passthrough-router.ts",
    "upstream/pool/connection-pool.ts",
    "watch/session/anomaly-log.ts",
    "ops/admin/http/posting.ts",
    "ops/admin/authorization/authorization.ts",
  ];
  for (const file of files) {
    const written = [...readFileSync(`src/${file}`, "utf8").matchAll(/kind: "([a-z_]+\.[a-z_]+)"/g)];
    assert.ok(written.length > 0, file);
    for (const [, kind = ""] of written)
      assert.ok(own.has(kind) || eventKinds[kind as Entry["kind"]].pace !== undefined, `${file}: ${kind}`);
  }
});

test("one client that causes many entries does not hide those of another; the sum names the first", () => {
  const { clock, journal, told } = paced();
  const refused = (client: string): void =>
    journal.write({ kind: "request.refused", client, reason: "malformed" });
  for (let at = 0; at < 500; at += 1) refused("10.0.0.1");
  refused("10.0.0.2");
  assert.is(told.length, eventKinds["request.refused"].pace.mostOfOne + 1);
  clock.advance(paceMs);
  assert.equal(told.at(-1), {
    kind: "entries.omitted",
    of: "request.refused",
    count: 480,
    withinMs: paceMs,
    clients: ["10.0.0.1 480"],
  });
  refused("10.0.0.1");
  assert.is(told.at(-1)?.kind, "request.refused", "after ten seconds, entries are whole again");
});

test("of each kind, the entries of at most 2,000 clients are counted", () => {
  const { clock, journal, told } = paced();
  for (let at = 0; at <= clientsCounted; at += 1)
    for (const times of [1, 2])
      journal.write({
        kind: "request.refused",
        client: `10.0.${at >> 8}.${at & 255}`,
        reason: `malformed ${times}`,
      });
  const last = `10.0.${clientsCounted >> 8}.${clientsCounted & 255}`;
  for (let at = 0; at < 100; at += 1)
    journal.write({ kind: "request.refused", client: last, reason: "malformed" });
  clock.advance(paceMs);
  const [sum] = told.filter((entry) => entry.kind === "entries.omitted");
  assert.is(sum?.count, 2 * clientsCounted + 2);
  assert.is(sum?.clients.includes(`${last} 102`), false);
});

test.run();
