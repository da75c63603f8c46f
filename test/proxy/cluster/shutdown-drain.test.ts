import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import {
  drain,
  keptPortMs,
  keptPortWatchesMs,
  openingMs,
} from "../../../src/proxy/cluster/shutdown-drain.ts";
import { bearer, type PlayedClient, PlayedPath } from "../../support/path.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/cluster/shutdown-drain");

const times = { shutdownDelayMs: 100, timeoutMs: 1000 };

function parts(path: PlayedPath, client: PlayedClient, said: string[]) {
  return {
    clock: path.clock,
    journal: path.journal,
    exchanges: path.exchanges,
    queuedBytes: () => path.buffered.bytes,
    upgrades: () => 0,
    opening: () => 0,
    passListeners: () => Promise.resolve(),
    close: () => said.push("close"),
    goAway: () => {
      said.push("goAway");
      client.downstream.drain();
    },
    cut: () => said.push("cut"),
  };
}

/** Advances the clock in small steps, and lets pending promises run after each. */
async function pass(path: PlayedPath, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 10) {
    path.clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("plain requests finish, watches end between two events, then all is over", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const plain = client.ask("GET", "/api", [bearer("t")]);
  const watch = client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
  const [plainAsked, watchAsked] = path.backend("a").asked;
  watchAsked?.side?.sendHeaders(
    [new Field(":status", "200"), new Field("content-type", "application/json")],
    false,
  );
  watchAsked?.say('{"type":"ADDED","object":{}}\n');
  path.settle();
  const said: string[] = [];
  const done = drain(parts(path, client, said), times, new AbortController().signal);
  await pass(path, 200);
  plainAsked?.answer(200, "finished");
  await pass(path, 800);
  await within(20_000, "the drain", done);
  assert.equal(said, ["close", "goAway", "cut"]);
  assert.is(plain.body, "finished");
  assert.ok(watch.isEnded);
  assert.ok(path.entries.some((entry) => entry.kind === "drain.ended" && entry.cut === 0));
});

const watchHead = [new Field(":status", "200"), new Field("content-type", "application/json")];

/** Opens watches that the backend answers. Each also gets an event unless `isSilent`. */
function openWatches(path: PlayedPath, client: PlayedClient, count: number, isSilent = false) {
  const watches = Array.from({ length: count }, (_, index) =>
    client.ask("GET", "/api/v1/pods?watch=1", [bearer(`t-${index}`)]),
  );
  path.settle();
  for (const asked of path.backend("a").asked.slice(-count)) {
    asked.side?.sendHeaders(watchHead, false);
    if (!isSilent) asked.say('{"type":"ADDED","object":{}}\n');
  }
  path.settle();
  return watches;
}

test("watches end evenly over half the time, those that come late included (F17)", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const watches = openWatches(path, client, 40);
  const done = drain(
    parts(path, client, []),
    { shutdownDelayMs: 0, timeoutMs: 4000 },
    new AbortController().signal,
  );
  const endedCounts: number[] = [];
  for (let quarter = 0; quarter < 4; quarter += 1) {
    await pass(path, 500);
    endedCounts.push(watches.filter((watch) => watch.isEnded).length);
  }
  for (const [quarter, count] of endedCounts.entries())
    assert.ok(Math.abs(count - 10 * (quarter + 1)) <= 2, endedCounts.join());
  assert.ok(watches.every((watch) => watch.resetCode === undefined));
  await pass(path, 100);
  await within(20_000, "the drain", done);
});

test("a watch without an event is not ended before its client takes that well (D5)", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const [watch] = openWatches(path, client, 1, true);
  const slow = { shutdownDelayMs: 0, timeoutMs: 4000 };
  const done = drain(parts(path, client, []), slow, new AbortController().signal);
  await pass(path, 1050);
  assert.is(watch?.isEnded, false);
  await pass(path, 200);
  assert.is(watch?.isEnded, true);
  assert.is(watch?.resetCode, undefined);
  await pass(path, 100);
  await within(20_000, "the drain", done);
});

test("the drain waits for handshakes under way, but not for a client that sends nothing", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const said: string[] = [];
  let opening = 1;
  const own = { ...parts(path, client, said), opening: () => opening };
  const done = drain(own, { shutdownDelayMs: 0, timeoutMs: 10_000 }, new AbortController().signal);
  await pass(path, openingMs - 200);
  assert.equal(said, ["close", "goAway"]);
  opening = 0;
  await pass(path, 100);
  await within(20_000, "the drain", done);
  opening = 1;
  const again = drain(own, { shutdownDelayMs: 0, timeoutMs: 10_000 }, new AbortController().signal);
  await pass(path, openingMs + 100);
  await within(20_000, "the second drain", again);
});

const kept = { shutdownDelayMs: 100, timeoutMs: 10_000, isPortKept: true };

test("where clients wait for the next process, the port stays open while an exec has time, and then closes briefly", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  openWatches(path, client, 40);
  const said: string[] = [];
  let tunnels = 1;
  const own = { ...parts(path, client, said), upgrades: () => tunnels };
  const done = drain(own, kept, new AbortController().signal);
  await pass(path, 5_000);
  const [late] = openWatches(path, client, 1);
  const write = client.ask("POST", "/api/v1/namespaces/a/pods", [bearer("t")]);
  path.settle();
  await pass(path, 1_500);
  assert.equal(said, []);
  assert.is(late?.isEnded, false);
  tunnels = 0;
  await pass(path, keptPortWatchesMs + 200);
  assert.equal(said, ["close", "goAway"]);
  assert.is(late?.isEnded, true);
  assert.is(late?.resetCode, undefined);
  path.backend("a").last.answer(201, "created");
  await pass(path, 100);
  await within(20_000, "the drain", done);
  assert.is(write.body, "created");
  assert.ok(path.entries.some((entry) => entry.kind === "drain.ended" && entry.cut === 0));
});

test("where clients wait for the next process, neither an exec nor a slow request makes them wait for long", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const slow = client.ask("GET", "/api", [bearer("t")]);
  path.settle();
  const said: string[] = [];
  const own = { ...parts(path, client, said), upgrades: () => 1 };
  const done = drain(own, kept, new AbortController().signal);
  await pass(path, 100 + kept.timeoutMs - keptPortMs - 100);
  assert.equal(said, []);
  await pass(path, 200);
  assert.equal(said, ["close", "goAway"]);
  assert.is(slow.isEnded, false);
  await pass(path, keptPortMs);
  await within(20_000, "the drain", done);
  assert.equal(said, ["close", "goAway", "cut"]);
  assert.ok(path.entries.some((entry) => entry.kind === "drain.ended" && entry.cut === 2));
});

test("an answer that waits for a slow reader is read to its end before all is cut", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const slow = client.ask("GET", "/api", [bearer("t")]);
  slow.isReading = false;
  path.settle();
  path.backend("a").last.answer(200, "x".repeat(400_000));
  path.settle();
  const said: string[] = [];
  const done = drain(parts(path, client, said), times, new AbortController().signal);
  await pass(path, 500);
  assert.equal([path.exchanges.size, said], [0, ["close", "goAway"]]);
  slow.isReading = true;
  slow.stream.grant(slow.body.length);
  await pass(path, 200);
  await within(20_000, "the drain", done);
  assert.equal([slow.body.length, slow.isEnded, said.at(-1)], [400_000, true, "cut"]);
});

test("what is left at the timeout is cut, and counted", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const proxied = client.ask("GET", "/api/v1/namespaces/x/pods/y/proxy/stream", [bearer("t")]);
  path.settle();
  const done = drain(parts(path, client, []), times, new AbortController().signal);
  await pass(path, 1300);
  await within(20_000, "the drain", done);
  assert.equal([proxied.status, proxied.isEnded], ["504", true], "whether it ran is not known");
  assert.ok(path.entries.some((entry) => entry.kind === "drain.ended" && entry.cut === 1));
});

test("a second signal does not wait", async () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api", [bearer("t")]);
  path.settle();
  const hurry = new AbortController();
  const done = drain(parts(path, client, []), times, hurry.signal);
  hurry.abort();
  await within(20_000, "the drain", done);
  assert.is(path.exchanges.size, 0);
});

test.run();
