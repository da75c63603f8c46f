import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { data, wire } from "../../support/h2-frames.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/request/relay");

const watchPath = "/api/v1/configmaps?watch=true&resourceVersion=7";
const json = new Field("content-type", "application/json");
const event = (name: string): string => `{"type":"ADDED","object":{"metadata":{"name":"${name}"}}}\n`;

/** Returns a client with one exchange in progress on backend a. */
function asked(
  method: string,
  target: string,
  end = true,
): { path: PlayedPath; ear: ReturnType<typeof ask> } {
  const path = new PlayedPath(["a"]);
  const ear = ask(path, method, target, end);
  path.settle();
  return { path, ear };
}

function ask(path: PlayedPath, method: string, target: string, end: boolean) {
  return path.client().ask(method, target, [bearer("t")], end);
}

test("an answer arrives as it was given: status, fields in order, body", () => {
  const { path, ear } = asked("GET", "/api/v1/pods");
  path
    .backend("a")
    .last.answer(200, "[]", [new Field("x-a", "1"), new Field("x-b", "2"), new Field("x-a", "3")]);
  path.settle();
  assert.is(ear.status, "200");
  assert.equal(
    ear.heads[0]?.slice(1).map((field) => `${field.name}=${field.value}`),
    ["x-a=1", "x-b=2", "x-a=3"],
  );
  assert.equal([ear.body, ear.isEnded], ["[]", true]);
  assert.is(path.exchanges.size, 0);
});

test("a body goes up as it comes, and what the backend reads is granted to the client", () => {
  const { path, ear } = asked("POST", "/api/v1/namespaces/x/configmaps", false);
  for (let index = 0; index < 100; index += 1) {
    ear.say("x".repeat(10_000));
    path.settle();
  }
  ear.say("", true);
  path.settle();
  assert.is(path.backend("a").last.body.length, 1_000_000);
  assert.ok(path.backend("a").last.isEnded);
});

test("a slow reader gets an early answer to its end before it is told to stop its upload", () => {
  const { path, ear } = asked("PUT", "/api/v1/namespaces/n/pods/p", false);
  ear.isReading = false;
  const answer = "x".repeat(600_000);
  path.backend("a").last.answer(413, answer);
  path.settle();
  path.backend("a").last.side?.reset(errorCode.NO_ERROR);
  path.settle();
  assert.is(ear.resetCode, undefined);
  ear.isReading = true;
  ear.stream.grant(ear.body.length);
  path.settle();
  assert.equal([ear.body.length, ear.isEnded, ear.resetCode], [answer.length, true, errorCode.NO_ERROR]);
});

test("a refused upload is stopped, and gives its client's window back", () => {
  const { path, ear } = asked("PUT", "/api/v1/namespaces/n/pods/p", false);
  ear.say(Buffer.alloc(400_000));
  path.settle();
  path.backend("a").kill();
  path.settle();
  assert.equal([ear.status, ear.isEnded, ear.resetCode], ["504", true, errorCode.NO_ERROR]);
  assert.is(ear.stream.isClosed, true);
});

test("interim heads, trailers and an early answer pass", () => {
  const { path, ear } = asked("POST", "/x", false);
  const { side } = path.backend("a").last;
  side?.sendHeaders([new Field(":status", "103"), new Field("link", "</x>")], false);
  side?.sendHeaders([new Field(":status", "200")], false);
  side?.sendHeaders([new Field("x-checksum", "7")], true);
  path.settle();
  assert.equal(
    ear.heads.map((head) => head[0]?.value),
    ["103", "200", "7"],
  );
  assert.ok(ear.isEnded);
  side?.reset(errorCode.NO_ERROR);
  path.settle();
  assert.is(ear.resetCode, errorCode.NO_ERROR);
  assert.is(path.exchanges.size, 0);
});

/** A length above the size up to which the proxy holds a response until it is complete. */
const long = new Field("content-length", "1000000");

test("a truncated answer is reset, never ended (F9)", () => {
  const { path, ear } = asked("GET", "/api/v1/pods");
  const backend = path.backend("a");
  backend.last.side?.sendHeaders([new Field(":status", "200"), long], false);
  backend.last.say("half a li");
  path.settle();
  backend.kill();
  path.settle();
  assert.equal([ear.body, ear.isEnded, ear.resetCode], ["half a li", false, errorCode.INTERNAL_ERROR]);
});

test("a code that a client takes for an orderly end never reaches it (F9, nodejs/node 35209)", () => {
  for (const code of [errorCode.NO_ERROR, errorCode.CANCEL, errorCode.REFUSED_STREAM]) {
    const path = new PlayedPath(["a"]);
    const ear = path.client().ask("GET", "/list");
    path.settle();
    path.backend("a").last.side?.sendHeaders([new Field(":status", "200")], false);
    path.backend("a").last.say("half a li");
    path.backend("a").last.side?.reset(code);
    path.settle();
    assert.equal([ear.isEnded, ear.resetCode], [false, errorCode.INTERNAL_ERROR]);
  }
});

test("an answer that breaks the rules before its head went on is 502: the request may have been processed", () => {
  for (const [method, head] of [
    ["POST", [new Field(":status", "101")]],
    ["GET", [new Field(":status", "101")]],
    ["POST", [new Field(":status", "200"), new Field("connection", "close")]],
  ] as const) {
    const { path, ear } = asked(method, "/api/v1/namespaces/x/configmaps");
    path.backend("a").last.side?.sendHeaders(head, false);
    path.settle();
    // A 502 instead of a reset: Go's transport would by itself repeat a request that is reset with PROTOCOL_ERROR.
    assert.equal([ear.status, ear.isEnded, ear.resetCode], ["502", true, undefined]);
    assert.match(ear.body, "InternalError");
    assert.not.match(ear.body, "retryAfterSeconds");
    assert.is(path.exchanges.size, 0);
  }
});

test("what the backend itself calls malformed is told as it is", () => {
  const { path, ear } = asked("GET", "/api/%zz");
  path.backend("a").last.side?.reset(errorCode.PROTOCOL_ERROR);
  path.settle();
  assert.is(ear.resetCode, errorCode.PROTOCOL_ERROR);
});

const tooMany = (length: number): Field[] => [
  new Field(":status", "429"),
  new Field("retry-after", "1"),
  new Field("content-length", String(length)),
];

test("a refusal that is cut off by its backend's death is asked for elsewhere, as if it had never begun", () => {
  const path = new PlayedPath(["a", "b"]);
  const ear = ask(path, "GET", watchPath, true);
  path.settle();
  const [first, second] = path.backend("a").asked.length > 0 ? (["a", "b"] as const) : (["b", "a"] as const);
  path.backend(first).last.side?.sendHeaders(tooMany(10), false);
  path.backend(first).last.say("12345");
  path.settle();
  assert.is(ear.status, "");
  path.backend(first).kill();
  path.settle();
  path.clock.advance(100);
  path.backend(second).last.answer(200, "");
  path.settle();
  assert.equal([ear.status, ear.resetCode], ["200", undefined]);
});

test("a whole one arrives as it is, with its trailers", () => {
  const { path, ear } = asked("GET", "/api/v1/pods");
  const { last } = path.backend("a");
  last.side?.sendHeaders(tooMany(10), false);
  last.say("1234567890");
  path.settle();
  last.side?.sendHeaders([new Field("x-last", "1")], true);
  path.settle();
  assert.equal(
    [ear.heads.map(([first]) => first?.value), ear.body, ear.isEnded],
    [["429", "1"], "1234567890", true],
  );
});

test("one that is long, or may not be asked for again, does not wait for its end", () => {
  for (const [method, length] of [
    ["GET", requestLimits.shortRefusalBytes + 1],
    ["POST", 10],
  ] as const) {
    const { path, ear } = asked(method, "/api/v1/namespaces/n/pods");
    path.backend("a").last.side?.sendHeaders(tooMany(length), false);
    path.backend("a").last.say("t");
    path.settle();
    assert.is(ear.status, "429");
  }
});

test("the backend's own reset code reaches the client", () => {
  const { path, ear } = asked("GET", "/x");
  path.backend("a").last.side?.reset(errorCode.ENHANCE_YOUR_CALM);
  path.settle();
  assert.is(ear.resetCode, errorCode.ENHANCE_YOUR_CALM);
});

test("a client that hangs up ends the upstream stream, and the backend is not blamed", () => {
  const { path, ear } = asked("GET", watchPath);
  ear.stream.reset(errorCode.CANCEL);
  path.settle();
  assert.is(path.backend("a").last.resetCode, errorCode.CANCEL);
  assert.is(path.exchanges.size, 0);
  assert.is(path.backends.views[0]?.state, "ready");
});

test("a watch passes whole events only, however they are cut", () => {
  const { path, ear } = asked("GET", watchPath);
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200"), json], false);
  const text = event("one") + event("two");
  for (const char of text.slice(0, -3)) {
    last.say(char);
    path.settle();
    assert.ok(ear.body === "" || ear.body.endsWith("\n"), ear.body);
  }
  assert.is(ear.body, event("one"));
  last.say(text.slice(-3));
  path.settle();
  assert.is(ear.body, text);
});

test("a watch whose backend dies ends between two events (D5)", () => {
  const { path, ear } = asked("GET", watchPath);
  const backend = path.backend("a");
  backend.last.side?.sendHeaders([new Field(":status", "200"), json], false);
  backend.last.say(event("one") + event("two").slice(0, 20));
  path.settle();
  backend.kill();
  path.settle();
  assert.equal([ear.body, ear.isEnded, ear.resetCode], [event("one"), true, undefined]);
});

test("a watch that its backend resets ends between two events: a reset would make client-go relist (D5)", () => {
  const { path, ear } = asked("GET", watchPath);
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200"), json], false);
  last.say(event("one") + event("two").slice(0, 20));
  path.settle();
  last.side?.reset(errorCode.INTERNAL_ERROR);
  path.settle();
  assert.equal([ear.body, ear.isEnded, ear.resetCode], [event("one"), true, undefined]);
});

test("an early end of a watch without events waits until it is 1.1 s old (D5)", () => {
  const { path, ear } = asked("GET", "/api/v1/configmaps?watch=true&sendInitialEvents=false");
  const backend = path.backend("a");
  backend.last.side?.sendHeaders([new Field(":status", "200"), json], false);
  path.settle();
  path.clock.advance(300);
  backend.kill();
  path.clock.advance(700);
  assert.not(ear.isEnded);
  path.clock.advance(200);
  assert.ok(ear.isEnded);
});

test("an event larger than every window arrives", () => {
  const { path, ear } = asked("GET", watchPath);
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200"), json], false);
  last.say(event("x".repeat(3_000_000)));
  path.settle();
  assert.is(ear.body.length, event("x".repeat(3_000_000)).length);
});

test("a slow reader is felt by the backend: no more than its windows is under way", () => {
  const { path, ear } = asked("GET", "/api/v1/pods");
  ear.isReading = false;
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  for (let index = 0; index < 400; index += 1) {
    last.say(Buffer.alloc(16_000));
    path.settle();
  }
  const arrived = ear.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  assert.ok(arrived <= 256 * 1024, `the client's window holds: ${arrived}`);
  const [session] = path.backend("a").sessions.filter(({ session: one }) => one.queuedBytes > 0);
  const waiting = session?.session.queuedBytes ?? 0;
  assert.ok(waiting > 6_400_000 - 3 * 256 * 1024, `the rest never left the backend: ${waiting} waits there`);
});

test("what comes after the exchange is over goes nowhere and keeps no window", () => {
  const { path, ear } = asked("POST", "/x", false);
  path.backend("a").last.side?.reset(errorCode.CANCEL);
  path.settle();
  ear.say("late");
  path.settle();
  assert.is(path.exchanges.size, 0);
});

/**
 * Sends `count` uploads, interleaved, in DATA frames of one byte. They arrive at the proxy in reads of 64 KiB. Returns
 * the number of DATA frames and the bodies that the backend receives.
 */
function uploads(count: number, octets: number): { frames: number; bodies: string[]; isEnded: boolean } {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const begun = Array.from({ length: count }, () => client.ask("POST", "/api/v1/pods", [], false));
  path.settle();
  const ids = begun.map(({ stream }) => stream.id);
  const frames = Array.from({ length: octets }, (_, at) =>
    ids.map((id) => data(id, String(at % 10), at === octets - 1 ? "end" : undefined)),
  ).flat();
  const bytes = wire(...frames);
  for (let at = 0; at < bytes.length; at += 65_536) {
    client.downstream.receive(bytes.subarray(at, at + 65_536));
    path.settle();
  }
  const heard = path.backend("a").asked;
  return {
    frames: heard.reduce((sum, { chunks }) => sum + chunks.length, 0),
    bodies: heard.map(({ body }) => body),
    isEnded: heard.every(({ isEnded }) => isEnded),
  };
}

test("an upload in frames of one byte reaches the upstream connection in a tenth of them, whole, in order, and ended (A16)", () => {
  for (const [count, octets] of [
    [1, 40_000],
    [2, 20_000],
    [20, 2000],
  ] as const) {
    const { frames, bodies, isEnded } = uploads(count, octets);
    const whole = Array.from({ length: octets }, (_, at) => String(at % 10)).join("");
    assert.is(bodies.length, count);
    for (const body of bodies) assert.is(body, whole);
    assert.ok(isEnded);
    assert.ok(frames <= (count * octets) / 10, `${count} uploads: ${frames} of ${count * octets} frames`);
  }
});

test("a keystroke waits for no other: it leaves in the turn in which it came", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const typing = client.ask("POST", "/api/v1/namespaces/a/pods/b/exec", [], false);
  path.settle();
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  for (let key = 1; key <= 100; key += 1) {
    path.clock.advance(10);
    typing.say("x");
    path.settle();
    assert.is(last.body.length, key);
    last.say("y");
    path.settle();
  }
  assert.is(last.chunks.length, 100);
});

test.run();
