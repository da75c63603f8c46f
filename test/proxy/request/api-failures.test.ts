import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../../src/events/journal.ts";
import { Journal } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { classify, type RequestInfo } from "../../../src/kube/request-info.ts";
import { outcomeLimits, PeerOutcomes } from "../../../src/proxy/observe/peer-outcomes.ts";
import { AvoidedApis, apiFailureLimits } from "../../../src/proxy/request/avoided-apis.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/request/api-failures");

/** The shortest time in ms after which a backend is named that has only failed. */
const runMs = (outcomeLimits.runOutcomes - 1) * outcomeLimits.runStepMs;
const ok = [new Field(":status", "200")];
const readOf = (group: string): RequestInfo => classify("GET", `/apis/${group}/v1/things`);

function started(): { failures: AvoidedApis; clock: ReturnType<typeof manualClock>; entries: Entry[] } {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  return { failures: new AvoidedApis(clock, journal), clock, entries };
}

/** Backend a fails this API group's requests, while backend b answers them. */
function grow(failures: AvoidedApis, group: string): void {
  for (let count = 0; count < outcomeLimits.failures; count += 1) {
    failures.failed(readOf(group), "a", "refused");
    failures.answered("b", readOf(group), 1, ok);
  }
}

function webhookFails(failures: AvoidedApis, name: string): void {
  const write = classify("POST", "/api/v1/namespaces/n/pods");
  const reader = failures.readerOf(write);
  const message = `Internal error occurred: failed calling webhook \\"${name}\\": failed to call webhook`;
  const body = Buffer.from(`{"kind":"Status","message":"${message}"}`);
  reader?.answered("a");
  reader?.read(body, 0, body.length, true);
  failures.answered("b", write, 1, ok);
}

test("a limited number of APIs is avoided, and of subjects counted", () => {
  const { failures } = started();
  for (let at = 0; at < 2 * apiFailureLimits.avoided; at += 1) grow(failures, `g${at}.example.com`);
  assert.is(failures.unreachableFrom("a").length, apiFailureLimits.avoided);
  const outcomes = new PeerOutcomes();
  for (let at = 0; at < 2 * outcomeLimits.subjects; at += 1) outcomes.failed(`s${at}`, "a", 0);
  assert.is([...outcomes.subjects].length, outcomeLimits.subjects);
});

test("what failed more than a minute ago does not count, and then nothing is counted", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  for (let count = 0; count < 2 * outcomeLimits.failures; count += 1) {
    failures.failed(read, "a", "refused");
    failures.answered("b", read, 1, ok);
    clock.advance(20_000);
  }
  assert.equal(entries, []);
  const outcomes = new PeerOutcomes();
  outcomes.failed("s", "a", 0);
  outcomes.forgetOld(outcomeLimits.parts * outcomeLimits.partMs);
  assert.ok(outcomes.isEmpty);
});

test("a backend that begins to fail is named after seconds, although it succeeded, and all failed, just before", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  // The server restarts: the requests of both backends fail, then they succeed for ten seconds.
  for (let count = 0; count < 20; count += 1)
    for (const backend of ["a", "b"]) failures.failed(read, backend, "refused");
  for (let count = 0; count < 40; count += 1) {
    for (const backend of ["a", "b"]) failures.answered(backend, read, 1, ok);
    clock.advance(250);
  }
  const beganAt = clock.now();
  while (entries.length === 0 && clock.now() < beganAt + 60_000) {
    failures.failed(read, "a", "refused");
    failures.answered("b", read, 1, ok);
    clock.advance(250);
  }
  // Of one request in 250 ms, every fourth counts, because only it ends `runStepMs` ms after the previous one.
  const isNamedAfterMs = clock.now() - beganAt;
  assert.ok(isNamedAfterMs > runMs && isNamedAfterMs <= runMs + 2000, `${isNamedAfterMs} ms`);
  assert.equal(failures.unreachableFrom("a"), ["g.example.com"]);
});

test("a server that fails half of all requests, or for a moment at one backend only, names no backend", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  for (let count = 0; count < 400; count += 1) {
    // Each backend's requests reach a good and a bad server in turn.
    for (const [at, backend] of ["a", "b"].entries())
      if (Math.floor(count / 2) % 2 === at) failures.failed(read, backend, "refused");
      else failures.answered(backend, read, 1, ok);
    clock.advance(100);
  }
  assert.equal(entries, []);
  // Both reconnect, a later than b.
  for (let ms = 0; ms < runMs; ms += 100) {
    if (ms < 1000) failures.failed(read, "b", "refused");
    else failures.answered("b", read, 1, ok);
    failures.failed(read, "a", "refused");
    clock.advance(100);
  }
  assert.equal(entries, []);
});

test("a backend that was not tested while its peer was, or whose peer was not, is not named", () => {
  const read = readOf("g.example.com");
  const burst = outcomeLimits.runOutcomes;
  for (const isIdle of [true, false]) {
    const { failures, clock, entries } = started();
    // Both backends reach the server for 40 s. Then the server is down for ten seconds.
    failures.failed(read, "a", "refused");
    for (let second = 0; second < 40; second += 1) {
      for (const backend of ["a", "b"]) failures.answered(backend, read, 1, ok);
      clock.advance(1000);
    }
    // In the first case, b gets no requests meanwhile. In the second case, a gets none after the server is back.
    for (let second = 0; second < 10; second += 1) {
      failures.failed(read, "a", "refused");
      if (!isIdle) failures.failed(read, "b", "refused");
      clock.advance(1000);
    }
    if (!isIdle)
      for (let second = 0; second < 10; second += 1) {
        failures.answered("b", read, 1, ok);
        clock.advance(1000);
      }
    // A burst of requests when the server is back; a still uses its broken connection.
    for (let count = 0; count < burst; count += 1) failures.answered("b", read, 1, ok);
    for (let count = 0; count < burst; count += 1) failures.failed(read, "a", "refused");
    assert.equal(entries, [], isIdle ? "b was idle" : "a was idle");
  }
});

test("failures of one burst name no backend by successes of its peer before or after the burst", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  const succeed = (seconds: number): void => {
    for (let second = 0; second < seconds; second += 1) {
      failures.answered("b", read, 1, ok);
      clock.advance(1000);
    }
  };
  // Twice, the server fails all requests that are under way at it at the same moment. All of them came through a.
  failures.failed(read, "a", "refused");
  for (let burst = 0; burst < 2; burst += 1) {
    succeed(20);
    for (let count = 0; count < 20; count += 1) {
      failures.failed(read, "a", "refused");
      clock.advance(2);
    }
  }
  assert.equal(entries, []);
  // The connection of a stays broken, and the requests of both backends continue.
  for (let count = 0; entries.length === 0 && count < 10; count += 1) {
    failures.failed(read, "a", "refused");
    succeed(1);
  }
  assert.equal(
    entries.map(({ kind }) => kind),
    ["backend.api_unreachable"],
  );
});

test("successes of one burst at its peer name no backend whose failures came before or after it", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  for (let count = 0; count < 20; count += 1) {
    failures.failed(read, "a", "refused");
    clock.advance(100);
    if (count === 10) for (let burst = 0; burst < 20; burst += 1) failures.answered("b", read, 1, ok);
  }
  assert.equal(entries, []);
});

test("a stall of this process, after which many results arrive at once, names no backend", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  failures.failed(read, "a", "refused");
  for (let second = 0; second < 50; second += 1) {
    for (const backend of ["a", "b"]) failures.answered(backend, read, 1, ok);
    clock.advance(1000);
  }
  failures.failed(read, "a", "refused");
  clock.advance(2 * runMs);
  for (let count = 0; count < outcomeLimits.runOutcomes; count += 1) {
    failures.answered("b", read, 1, ok);
    failures.failed(read, "a", "refused");
  }
  assert.equal(entries, []);
});

test("successes of another backend that are more than a minute old name no backend", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  failures.failed(read, "a", "refused");
  for (let count = 0; count < 2 * outcomeLimits.runOutcomes; count += 1) {
    failures.answered("b", read, 1, ok);
    clock.advance(1000);
  }
  // From now on, no backend reaches the server, and only a gets requests, at first a few.
  for (let count = 0; count < 3; count += 1) {
    failures.failed(read, "a", "refused");
    clock.advance(25_000);
  }
  for (let count = 0; count < 60; count += 1) {
    failures.failed(read, "a", "refused");
    clock.advance(1000);
  }
  assert.equal(entries, []);
});

test("a lasting failure is reported every ten seconds, and ends with several successes", () => {
  const { failures, clock, entries } = started();
  const read = readOf("g.example.com");
  for (let second = 0; second < 25; second += 1) {
    failures.failed(read, "a", "refused");
    failures.answered("b", read, 1, ok);
    clock.advance(1000);
  }
  assert.equal(
    entries.map(({ kind }) => kind),
    Array.from({ length: 3 }, () => "backend.api_unreachable"),
  );
  for (let count = 1; count < apiFailureLimits.trials; count += 1) failures.answered("a", read, 1, ok);
  assert.is(entries.length, 3);
  failures.answered("a", read, 1, ok);
  assert.is(entries.at(-1)?.kind, "backend.api_reachable");
});

test("what the apiserver itself refuses neither is a success of its peer, nor shows that it reaches the API again", () => {
  const read = readOf("g.example.com");
  for (const status of ["401", "403", "429"]) {
    const { failures, entries } = started();
    const refused = [new Field(":status", status)];
    for (let count = 0; count < 2 * outcomeLimits.failures; count += 1) {
      failures.failed(read, "a", "refused");
      failures.answered("b", read, 1, refused);
    }
    assert.equal(entries, [], status);
    grow(failures, "g.example.com");
    assert.equal(failures.unreachableFrom("a"), ["g.example.com"]);
    for (let count = 0; count < apiFailureLimits.trials; count += 1) failures.answered("a", read, 1, refused);
    assert.equal(failures.unreachableFrom("a"), ["g.example.com"], status);
  }
});

test("a built-in group, a 503 and a watch are no success", () => {
  const { failures, entries } = started();
  const read = readOf("g.example.com");
  for (let count = 0; count < 2 * outcomeLimits.failures; count += 1) {
    failures.failed(read, "a", "refused");
    failures.answered("b", read, 1, [new Field(":status", "503")]);
    failures.answered("b", classify("GET", "/apis/g.example.com/v1/things?watch=1"), 1, ok);
    failures.answered("b", readOf("apps"), 1, ok);
  }
  assert.equal(entries, []);
});

test("names have a limited length and no control characters; long bodies are read to a limit", () => {
  const { failures, entries } = started();
  for (let count = 0; count < outcomeLimits.failures; count += 1) webhookFails(failures, "a\u001b[31m\nb");
  assert.equal(
    entries.map((entry) => (entry.kind === "backend.webhook_failing" ? entry.webhook : "")),
    ["a?[31m?b"],
  );
  const long = started();
  for (let count = 0; count < 2 * outcomeLimits.failures; count += 1)
    webhookFails(long.failures, "x".repeat(apiFailureLimits.nameChars + 1));
  assert.equal(long.entries, []);
  const late = started();
  const reader = late.failures.readerOf(classify("POST", "/api/v1/namespaces/n/pods"));
  const body = Buffer.from("x".repeat(2 * apiFailureLimits.statusBytes));
  reader?.read(body, 0, body.length, false);
  reader?.read(body, 0, body.length, true);
  assert.equal(late.entries, []);
});

test("a removed backend is forgotten", () => {
  const { failures } = started();
  grow(failures, "g.example.com");
  assert.equal(failures.avoided(readOf("g.example.com")), ["a"]);
  failures.reconcile(["b"]);
  assert.equal([failures.avoided(readOf("g.example.com")), failures.counts.size], [[], 0]);
});

test.run();
