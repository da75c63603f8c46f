/**
 * The proxy holds back the body of a read's response until it is complete. If the backend is lost before that, the
 * client still gets a complete response, from another backend.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { bearer, type PlayedBackend, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/request/held-body");

const ok = new Field(":status", "200");

type Begun = {
  readonly path: PlayedPath;
  readonly ear: ReturnType<ReturnType<PlayedPath["client"]>["ask"]>;
  readonly from: PlayedBackend;
  readonly other: PlayedBackend;
};

/** Sends a GET to a proxy with two backends. The backend that receives it, `from`, sends the head and `begin`. */
function begun(target: string, begin: Buffer | string): Begun {
  const path = new PlayedPath(["a", "b"]);
  const ear = path.client().ask("GET", target, [bearer("t")]);
  path.settle();
  const [from, other] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  if (from === undefined || other === undefined) throw new Error("Two backends are played");
  from.last.side?.sendHeaders([ok], false);
  from.last.say(begin);
  path.settle();
  return { path, ear, from, other };
}

test("a list whose backend is lost in the middle comes whole from another backend", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
  assert.is(ear.heads.length, 0);
  from.kill();
  path.settle();
  assert.is(other.asked.length, 1);
  other.last.answer(200, "a list");
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "a list", true]);
});

test("a list whose backend falls silent in the middle comes whole from another backend, within a second", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
  for (const { cable } of from.sessions) cable.blackHole();
  from.isMute = true;
  path.clock.advance(1_000);
  assert.is(other.asked.length, 1);
  other.last.answer(200, "a list");
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "a list", true]);
  path.clock.advance(5_000);
  assert.equal([ear.heads.length, path.exchanges.size], [1, 0]);
});

test("a list is forwarded when it is whole, also in many pieces", () => {
  const { path, ear, from } = begun("/api/v1/pods", "a");
  for (const piece of ["b", "c"]) from.last.say(piece);
  path.settle();
  assert.is(ear.body, "");
  from.last.say("d", true);
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "abcd", true]);
});

test("a body is held up to its limit, and is cut off when its backend is lost after that (F9)", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", Buffer.alloc(requestLimits.heldBodyBytes));
  assert.is(ear.heads.length, 0);
  from.last.say("x");
  path.settle();
  assert.equal([ear.status, ear.body.length], ["200", requestLimits.heldBodyBytes + 1]);
  from.kill();
  path.settle();
  assert.equal([ear.isEnded, ear.resetCode, other.asked.length], [false, errorCode.INTERNAL_ERROR, 0]);
});

test("a document longer than the windows is held whole", () => {
  const { path, ear, from, other } = begun("/openapi/v2", Buffer.alloc(16_000));
  for (let at = 0; at < 300; at += 1) {
    from.last.say(Buffer.alloc(16_000));
    path.settle();
  }
  assert.is(ear.heads.length, 0);
  assert.is(path.buffered.bytes >= 4_000_000, true, "the backend has got credit");
  from.kill();
  path.settle();
  assert.is(path.buffered.bytes < 100_000, true, "nothing is kept of it");
  other.last.answer(200, "a document");
  path.settle();
  assert.equal([ear.body, ear.isEnded], ["a document", true]);
});

test("a document above the limit arrives, and the backend gets credit for each byte once", () => {
  const { path, ear, from } = begun("/openapi/v2", Buffer.alloc(16_000));
  const pieces = Math.ceil((3 * requestLimits.heldDocumentBytes) / 16_000);
  for (let at = 1; at < pieces; at += 1) {
    from.last.say(Buffer.alloc(16_000));
    path.settle();
  }
  from.last.say("", true);
  path.settle();
  assert.equal([ear.body.length, ear.isEnded, path.buffered.bytes], [pieces * 16_000, true, 0]);
});

test("a body that comes slowly is forwarded after a while", () => {
  const { path, ear, from } = begun("/metrics", "a line");
  path.clock.advance(requestLimits.heldBodyMs - 100);
  assert.is(ear.heads.length, 0);
  path.clock.advance(200);
  assert.equal([ear.status, ear.body], ["200", "a line"]);
  from.last.say(", and another", true);
  path.settle();
  assert.equal([ear.body, ear.isEnded], ["a line, and another", true]);
});

test("a body whose stream the backend resets is forwarded, and reset", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
  from.last.side?.reset(errorCode.INTERNAL_ERROR);
  path.settle();
  assert.equal([ear.body, ear.resetCode, other.asked.length], ["half a li", errorCode.INTERNAL_ERROR, 0]);
});

test("no timer is left of a body whose backend was suspect when it was lost", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
  const { after } = path.clock;
  let timers = 0;
  path.clock.after = (ms, run) => {
    if (ms === requestLimits.heldBodyMs) timers += 1;
    return after(ms, run);
  };
  from.blackHole();
  path.clock.advance(2_500);
  other.last.side?.sendHeaders([ok], false);
  for (const piece of ["a ", "li"]) other.last.say(piece);
  path.settle();
  other.last.say("st", true);
  path.settle();
  assert.equal([ear.body, ear.isEnded, path.exchanges.size], ["a list", true, 0]);
  timers = 0;
  path.clock.advance(10 * requestLimits.heldBodyMs);
  assert.is(timers, 0);
});

test("a body that is under way wins against the refusal of a hedge", () => {
  for (const status of [503, 429, 404]) {
    const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
    const releases = from.sessions.map(({ cable }) => cable.hold());
    from.isMute = true;
    path.clock.advance(1_000);
    assert.is(other.asked.length, 1);
    other.last.answer(status, "not now");
    path.settle();
    assert.is(ear.heads.length, 0, `${status}`);
    from.last.say("st", true);
    for (const release of releases) release();
    path.settle();
    assert.equal([ear.status, ear.body, ear.isEnded], ["200", "half a list", true]);
  }
});

test("a body that is under way stays held when the hedge is lost", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
  from.blackHole();
  path.clock.advance(1_000);
  assert.is(other.asked.length, 1);
  other.kill();
  path.settle();
  assert.is(ear.heads.length, 0);
  other.isDown = false;
  path.clock.advance(3_000);
  assert.is(other.asked.length, 2);
  other.last.answer(200, "a list");
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "a list", true]);
});

test("a body whose stream the backend resets gives way to the hedge", () => {
  const { path, ear, from, other } = begun("/api/v1/pods", "half a li");
  const releases = from.sessions.map(({ cable }) => cable.hold());
  from.isMute = true;
  path.clock.advance(1_000);
  assert.is(other.asked.length, 1);
  from.last.side?.reset(errorCode.INTERNAL_ERROR);
  for (const release of releases) release();
  path.settle();
  assert.is(ear.heads.length, 0);
  other.last.answer(200, "a list");
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "a list", true]);
});

test("a body with a length above the limit is not held", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const length = new Field("content-length", String(requestLimits.heldBodyBytes + 1));
  path.backend("a").last.side?.sendHeaders([ok, length], false);
  path.backend("a").last.say("x");
  path.settle();
  assert.equal([ear.status, ear.body], ["200", "x"]);
});

test("no body is held while memory is short", () => {
  const path = new PlayedPath(["a"], { bufferBytes: 1_000_000 });
  path.buffered.add(600_000);
  const ear = path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  path.backend("a").last.side?.sendHeaders([ok], false);
  path.backend("a").last.say("half a li");
  path.settle();
  assert.is(ear.body, "half a li");
});

test("a client that leaves while its response is held frees it", () => {
  const { path, ear } = begun("/api/v1/pods", Buffer.alloc(100_000));
  assert.ok(path.buffered.bytes >= 100_000);
  ear.stream.reset(errorCode.CANCEL);
  path.settle();
  assert.equal([path.exchanges.size, path.buffered.bytes], [0, 0]);
});

test.run();
