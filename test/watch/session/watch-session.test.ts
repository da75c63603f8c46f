import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { jwt } from "../../support/jwt.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, hold, lineOf, linesOf, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch-session");

// --- a backend that is lost ---

test("a watch whose backend dies continues at another backend after its last event, transparently to its client (row 1, 2)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a ~9a");
  watch.kill(watch.from);
  assert.is(watch.queryOf(watch.to), "resourceVersion=9&timeoutSeconds=3600");
  watch.serve(watch.to, "~10a -12a");
  watch.has("+8a ~9a ~10a -12a");
  assert.is(watch.ear.heads.length, 1, "no second head");
  assert.is(watch.path.exchanges.size, 1);
});

test("an event that a backend sent only in part is delivered whole by the next backend (row 6)", () => {
  const line = lineOf("~9a");
  for (let cut = 0; cut <= line.length; cut += 1) {
    const watch = new PlayedWatch();
    watch.serve(watch.from, "+8a");
    watch.from.last.say(line.slice(0, cut));
    watch.path.settle();
    watch.kill(watch.from);
    watch.serve(watch.to, cut === line.length ? "~10a" : "~9a ~10a");
    watch.has("+8a ~9a ~10a");
  }
});

test("a watch that its backend resets is resumed, because client-go would list everything again after a reset (row 18)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
  watch.path.settle();
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("an exact watch goes on before its first event", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from);
  watch.kill(watch.from);
  watch.serve(watch.to, "+8a");
  assert.is(watch.queryOf(watch.to), "resourceVersion=7&timeoutSeconds=3600");
  watch.has("+8a");
});

test("the resumed request equals the client's own, except the parameters that a resume has to change (row 14, 15)", () => {
  const fields = [
    bearer("t"),
    new Field("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    new Field("impersonate-user", "jane"),
    new Field("user-agent", "kubectl/v1.36"),
  ];
  const query =
    "allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=300";
  const watch = new PlayedWatch({ query, fields });
  const before = watch.from.last.request.fields;
  watch.serve(watch.from, "+3a =9$");
  watch.advance(10_000);
  watch.kill(watch.from);
  const { request } = watch.to.last;
  assert.is(
    request.path,
    "/api/v1/configmaps?watch=true&labelSelector=a%3Db&resourceVersion=9&allowWatchBookmarks=true&timeoutSeconds=290",
  );
  const values = (all: readonly Field[]): string[] =>
    all.filter(({ name }) => name !== ":path").map(({ name, value }) => `${name}: ${value}`);
  assert.equal(values(request.fields), values(before));
  assert.ok(
    values(before).some((text) => text.startsWith("audit-id: ")),
    "one audit ID for all attempts",
  );
});

test("a watch that loses its backend within its initial events ends instead of moving, because a move would lose events (row 3)", () => {
  for (const query of ["resourceVersion=0", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"]) {
    const watch = new PlayedWatch({ query });
    watch.serve(watch.from, "+9a +3b");
    watch.kill(watch.from);
    watch.has("+9a +3b", "ended");
    assert.is(watch.to.asked.length, 0);
  }
});

test("a listing of which nothing was sent is asked for again, as it was", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=0&timeoutSeconds=60" });
  watch.serve(watch.from);
  watch.advance(2500);
  watch.kill(watch.from);
  assert.is(watch.queryOf(watch.to), "resourceVersion=0&timeoutSeconds=58");
  watch.serve(watch.to, "+9a +3b ~12a");
  watch.has("+9a +3b ~12a");
});

test("a watch that began at 'now' is not requested again from a later 'now' (row 4)", () => {
  const watch = new PlayedWatch({ query: "sendInitialEvents=false" });
  watch.serve(watch.from);
  watch.advance(2000);
  watch.kill(watch.from);
  watch.has("", "ended");
  assert.is(watch.to.asked.length, 0);
});

test("a watch of 'events', whose versions repeat, is requested again from the version before, and each event arrives once (row 5)", () => {
  for (const cut of [1, 2, 3]) {
    const batch = ["-12a", "-12b", "-12c", "-12d"];
    const watch = new PlayedWatch({ resource: "/api/v1/namespaces/n/events" });
    watch.serve(watch.from, `+8x ${batch.slice(0, cut).join(" ")}`);
    watch.kill(watch.from);
    assert.is(watch.queryOf(watch.to), "resourceVersion=8&timeoutSeconds=3600");
    watch.serve(watch.to, `${batch.join(" ")} +13y`);
    watch.has(`+8x ${batch.join(" ")} +13y`);
  }
});

test("events wait until a slow client reads them, and a resume requests the events after the waiting ones (row 10)", () => {
  const watch = new PlayedWatch();
  watch.ear.isReading = false;
  const names = Array.from({ length: 2000 }, (_, index) => `+${index + 8}${"x".repeat(200)}`);
  watch.serve(watch.from, names.slice(0, 1000).join(" "));
  watch.kill(watch.from);
  const from = /resourceVersion=(\d+)/.exec(watch.queryOf(watch.to))?.[1];
  assert.is(from, "1007");
  watch.serve(watch.to, names.slice(1000).join(" "));
  watch.ear.isReading = true;
  watch.ear.stream.grant(watch.ear.body.length);
  for (let turn = 0; turn < 50; turn += 1) watch.path.settle();
  watch.has(names.join(" "));
});

test("an event out of order is forwarded, and its watch is not resumed at another backend (row 12)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "~9a -8a ~10a");
  watch.kill(watch.from);
  watch.has("~9a -8a ~10a", "ended");
  assert.is(watch.to.asked.length, 0);
});

test("events of a backend that ignores the requested version are not forwarded (row 14)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a ~9a");
  watch.kill(watch.from);
  watch.serve(watch.to, "+8a ~9a ~10a");
  watch.has("+8a ~9a", "ended");
});

// --- how long a watch lives ---

test("a watch that was moved ends at its client's own timeout (row 16)", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=20" });
  watch.serve(watch.from, "+8a");
  watch.advance(12_300);
  watch.kill(watch.from);
  assert.is(watch.queryOf(watch.to), "resourceVersion=8&timeoutSeconds=8");
  watch.serve(watch.to, "~9a");
  watch.advance(7500);
  watch.end(watch.to);
  watch.has("+8a ~9a", "ended");
  assert.equal([watch.from.asked.length, watch.to.asked.length], [1, 1]);
});

test("a watch whose resumed request gets 401 or 403 ends, and its client gets the 401 or 403 for its own next request (row 16)", () => {
  for (const status of ["401", "403"]) {
    const watch = new PlayedWatch();
    watch.serve(watch.from, "+8a");
    watch.kill(watch.from);
    watch.to.last.side?.sendHeaders([new Field(":status", status)], true);
    watch.path.settle();
    watch.has("+8a", "ended");
  }
});

test("a token that is over is not shown again, in a hedge or in a resume", () => {
  const exp = 1_800_000_000 + 60;
  const watch = new PlayedWatch({ fields: [bearer(jwt({ exp }))] });
  watch.serve(watch.from, "+8a");
  watch.advance(61_000);
  blackHole(watch.from);
  watch.advance(1500);
  assert.is(watch.to.asked.length, 0);
  watch.advance(5000);
  watch.has("+8a", "ended");
  assert.is(watch.to.asked.length, 0);
});

test("a client that hangs up ends all that was asked for it", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.ear.stream.reset(errorCode.CANCEL);
  watch.path.settle();
  assert.is(watch.to.last.resetCode, errorCode.CANCEL);
  assert.is(watch.path.exchanges.size, 0);
  watch.advance(60_000);
  assert.is(watch.to.asked.length, 1);
});

test("a watch that ended early and without a reason is asked for once more, of the same backend", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.end(watch.from);
  assert.equal([watch.from.asked.length, watch.to.asked.length], [2, 0]);
  watch.serve(watch.from);
  watch.end(watch.from);
  watch.has("+8a", "ended");
});

test("if a backend ends the watch of a slow client, the watch is not resumed (row 19)", () => {
  const watch = new PlayedWatch();
  watch.ear.isReading = false;
  watch.serve(
    watch.from,
    Array.from({ length: 300 }, (_, index) => `+${index + 8}${"x".repeat(1000)}`).join(" "),
  );
  watch.advance(watchLimits.slowWatchMs);
  watch.end(watch.from);
  assert.equal([watch.from.asked.length, watch.to.asked.length], [1, 0]);
  watch.ear.isReading = true;
  watch.ear.stream.grant(watch.ear.body.length);
  for (let turn = 0; turn < 50; turn += 1) watch.path.settle();
  assert.ok(watch.ear.isEnded);
});

// --- refusals ---

test("a resume that gets an ERROR 410 is sent to one more backend, then the watch ends (row 17, 24)", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  const asked = (): string[] =>
    [...path.played].filter(([, one]) => one !== watch.from && one.asked.length > 0).map(([name]) => name);
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const [name = ""] = asked().slice(-1);
    const last = asked()
      .map((one) => path.backend(one))
      .find((one) => one.last.heads.length === 0 && one.last.resetCode === undefined);
    assert.is(asked().length, attempt, name);
    if (last === undefined) throw new Error("No backend was asked");
    watch.serve(last, "!410");
  }
  watch.has("+8a", "ended");
});

test("an overloaded backend is not insisted on", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
  watch.path.settle();
  watch.to.last.answer(429, "", [new Field("retry-after", "1")]);
  watch.advance(1000);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("a backend that takes the watch and says nothing at all is given up for another", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
  watch.path.settle();
  assert.is(watch.to.asked.length, 1);
  watch.advance(watchLimits.resumeAnswerMs);
  assert.is(watch.to.last.resetCode, errorCode.CANCEL);
  watch.advance(watchLimits.parkedMs);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("when no backend can be asked it waits fifteen seconds, and ends", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.to);
  watch.kill(watch.from);
  watch.advance(watchLimits.resumeMs - 100);
  watch.has("+8a");
  watch.advance(600);
  watch.has("+8a", "ended");
});

test("a backend that comes back in time is asked", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.to);
  watch.kill(watch.from);
  watch.advance(5000);
  watch.to.isDown = false;
  watch.advance(2000);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

// --- a backend that falls silent ---

test("a watch whose backend falls silent gets a hedge, and its events go on within a second (D6)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  blackHole(watch.from);
  watch.advance(750);
  assert.is(watch.queryOf(watch.to), "resourceVersion=8&timeoutSeconds=3600");
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
  watch.advance(10_000);
  watch.say(watch.to, "~10a");
  watch.has("+8a ~9a ~10a");
  assert.is(watch.to.asked.length, 1, "the hedge is the watch now");
});

test("a false alarm costs nothing: what both show goes on once, and the hedge is let go (D6)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  const letGo = hold(watch.from);
  watch.from.last.say(linesOf("~9a ~10a"));
  watch.advance(750);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
  letGo();
  watch.advance(250);
  watch.say(watch.from, "~11a");
  watch.has("+8a ~9a ~10a ~11a");
  assert.is(watch.to.last.resetCode, errorCode.CANCEL);
  assert.is(watch.path.migrations.moves.size, 0);
});

test("a hedge that is refused changes nothing", () => {
  const refusals: readonly ((watch: PlayedWatch) => void)[] = [
    (watch) => watch.to.last.answer(403),
    (watch) => watch.to.last.answer(429, "busy"),
    (watch) => watch.serve(watch.to, "!410"),
  ];
  for (const refuse of refusals) {
    const watch = new PlayedWatch();
    watch.serve(watch.from, "+8a");
    const letGo = hold(watch.from);
    watch.advance(750);
    refuse(watch);
    watch.advance(250);
    letGo();
    watch.advance(250);
    watch.say(watch.from, "~9a");
    watch.has("+8a ~9a");
    assert.is(watch.to.asked.length, 1);
  }
});

test("a slow reader gets no hedge (§5.5)", () => {
  const watch = new PlayedWatch();
  watch.ear.isReading = false;
  watch.serve(
    watch.from,
    Array.from({ length: 300 }, (_, index) => `+${index + 8}${"x".repeat(1000)}`).join(" "),
  );
  watch.advance(watchLimits.slowWatchMs);
  const letGo = hold(watch.from);
  watch.advance(1000);
  assert.is(watch.to.asked.length, 0);
  letGo();
});

test("of a listing and of a now there is no hedge: they wait for the verdict", () => {
  for (const [query, words] of [
    ["resourceVersion=0", "+9a"],
    ["sendInitialEvents=false", ""],
  ] as const) {
    const watch = new PlayedWatch({ query });
    watch.serve(watch.from, words);
    blackHole(watch.from);
    watch.advance(1200);
    assert.is(watch.to.asked.length, 0);
    watch.has(words);
    watch.advance(5000);
    watch.has(words, "ended");
  }
});

// --- a backend that sends GOAWAY ---

test("a watch whose backend says GOAWAY moves while both live, and nothing comes twice (W9)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  goAway(watch.from);
  watch.advance(50);
  watch.serve(watch.to);
  watch.say(watch.from, "~9a");
  watch.has("+8a ~9a");
  watch.say(watch.to, "~9a ~10a");
  watch.has("+8a ~9a ~10a");
  assert.is(watch.from.asked[0]?.resetCode, errorCode.CANCEL);
  watch.advance(watchLimits.logMs);
  assert.equal(
    watch.entries("watches.moved").map(({ reason, count }) => [reason, count]),
    [["draining", 1]],
  );
});

test("a backend that ends its watches while it goes is left at once", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  goAway(watch.from);
  watch.path.settle();
  watch.end(watch.from);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("so is one that ends a watch of half an hour without a deadline: a restart is not the server's timeout", () => {
  for (const isMoved of [false, true]) {
    const watch = new PlayedWatch();
    watch.serve(watch.from, "+8a");
    if (isMoved) {
      watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
      watch.path.settle();
      watch.serve(watch.to, "~9a");
    }
    const [from, to] = isMoved ? [watch.to, watch.from] : [watch.from, watch.to];
    watch.advance(watchLimits.watchServerMs + 60_000);
    if (!isMoved) goAway(from);
    watch.path.settle();
    watch.end(from);
    watch.serve(isMoved ? from : to, "~10a");
    assert.match(watch.queryOf(isMoved ? from : to), "timeoutSeconds=1740");
    watch.has(isMoved ? "+8a ~9a ~10a" : "+8a ~10a");
  }
});

test("a backend that is taken out of the configuration is left, too", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  const [name = ""] = [...watch.path.played].find(([, one]) => one === watch.to) ?? [];
  watch.path.reconcile([name]);
  watch.advance(50);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("where one watch of a client went, its next requests go (k/k 59848)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
  watch.path.settle();
  watch.serve(watch.to, "~9a");
  const plain = watch.client.ask("GET", "/api/v1/pods", [bearer("t")]);
  watch.path.settle();
  assert.is(watch.to.last.request.path, "/api/v1/pods");
  watch.to.last.answer(200, "[]");
  watch.path.settle();
  assert.is(plain.status, "200");
});

test("if another client's 401 makes the backend send GOAWAY on a shared upstream connection, no watch ends (row 22)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  const bad = watch.path.client().ask("GET", "/api/v1/pods", [bearer("wrong")]);
  watch.path.settle();
  for (const backend of [watch.from, watch.to]) {
    if (backend.last.request.path !== "/api/v1/pods") continue;
    backend.last.answer(401);
    goAway(backend);
  }
  watch.path.settle();
  assert.is(bad.status, "401");
  watch.say(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test.run();
