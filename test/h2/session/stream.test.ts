import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { takenBlocks } from "../../../src/h2/core/slabs.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { data, headers, reset, settings, windowUpdate } from "../../support/h2-frames.ts";
import { fieldsOf, type Opened, type SessionRig, serverRig } from "../../support/h2-session.ts";

const test = suite("h2/session/stream");

const ok = fieldsOf([[":status", "200"]]);
const trailers = fieldsOf([["grpc-status", "0"]]);

/** A stream whose response head was sent. `window` is the peer's stream window; its session window is large. */
function answered(window = 65_535): Opened & { readonly rig: SessionRig } {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: window }));
  rig.peer.sends(windowUpdate(0, 10_000_000), headers(1).get("/"));
  rig.last.stream.sendHeaders(ok, false);
  rig.clock.turn();
  rig.peer.heard();
  return { ...rig.last, rig };
}

function send(stream: Opened["stream"], text: string, end = false): void {
  const bytes = Buffer.from(text);
  stream.sendData(bytes, 0, bytes.length, end);
}

test("what the window does not let through waits, and its end with it", () => {
  const { rig, stream, ear } = answered(3);
  send(stream, "abcdef", true);
  rig.clock.turn();
  rig.peer.expects(data(1, "abc"));
  assert.equal([stream.queuedBytes, ear.sentBytes], [3, 3]);
  rig.peer.sends(windowUpdate(1, 2));
  rig.peer.expects(data(1, "de"));
  rig.peer.sends(windowUpdate(1, 2));
  rig.peer.expects(data(1, "f", "end"));
  assert.equal([stream.queuedBytes, ear.sentBytes], [0, 6]);
});

test("an end without bytes needs no window, shut or below zero", () => {
  for (const window of [0, 100]) {
    const { rig, stream } = answered(window);
    if (window > 0) {
      send(stream, "x".repeat(100));
      rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: 10 }));
      rig.peer.heard();
    }
    send(stream, "", true);
    rig.clock.turn();
    rig.peer.expects(data(1, "", "end"));
    assert.ok(stream.isClosed);
  }
});

test("trailers wait behind the body, and need no window themselves", () => {
  const { rig, stream } = answered(2);
  send(stream, "abcd");
  stream.sendHeaders(trailers, true);
  rig.clock.turn();
  rig.peer.expects(data(1, "ab"));
  rig.peer.sends(windowUpdate(1, 2));
  rig.peer.expects(data(1, "cd"), "HEADERS 1 grpc-status=0 END");
});

test("a piece of any size goes out at once as far as the windows are open", () => {
  for (const size of [16_384, 16_385, 65_536, 65_537, 131_072, 300_000, 400_000]) {
    const { rig, stream, ear } = answered(1_000_000);
    stream.sendData(Buffer.alloc(size, "x"), 0, size, true);
    rig.clock.turn();
    assert.is(rig.peer.body(1).length, size);
    assert.ok(rig.peer.hasEnded(1), `${size}`);
    assert.is(ear.sentBytes, size);
  }
});

test("a body of exactly one quantum and the whole session's window ends with it", () => {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 0 }));
  rig.peer.sends(windowUpdate(0, 1), headers(1).get("/"));
  const { stream } = rig.last;
  stream.sendHeaders(ok, false);
  for (let sent = 0; sent < 65_536; sent += 8192) send(stream, "x".repeat(8192));
  send(stream, "", true);
  rig.peer.sends(windowUpdate(1, 65_536));
  assert.is(rig.peer.body(1).length, 65_536);
  assert.ok(rig.peer.hasEnded(1));
});

test("small pieces that wait are copies: their chunk may be overwritten", () => {
  const { rig, stream } = answered(0);
  const chunk = Buffer.from("abc");
  stream.sendData(chunk, 0, 2, false);
  stream.sendData(chunk, 2, 3, true);
  chunk.fill("z");
  rig.peer.sends(windowUpdate(1, 100));
  rig.peer.expects(data(1, "abc", "end"));
});

test("a quarter of a megabyte of single bytes that wait takes little more than that (A16)", () => {
  const { rig, stream } = answered(0);
  const octet = Buffer.from("x");
  globalThis.gc?.();
  const before = process.memoryUsage();
  for (let count = 0; count < h2Limits.streamWindowBytes; count++) stream.sendData(octet, 0, 1, false);
  globalThis.gc?.();
  const after = process.memoryUsage();
  const used = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  assert.is(stream.queuedBytes, h2Limits.streamWindowBytes);
  assert.ok(used < 4 * h2Limits.streamWindowBytes, `${used} bytes`);
  rig.peer.sends(windowUpdate(1, h2Limits.streamWindowBytes));
  assert.is(rig.peer.body(1).length, h2Limits.streamWindowBytes);
});

test("bytes added while others of the same buffer are on their way out arrive once and in order", () => {
  const { rig, stream } = answered(0);
  send(stream, "a");
  for (let count = 0; count < 3000; count++) send(stream, "b");
  rig.peer.sends(windowUpdate(1, 2500));
  send(stream, "c", true);
  rig.peer.sends(windowUpdate(1, 2500));
  assert.is(rig.peer.body(1).toString(), `a${"b".repeat(3000)}c`);
});

test("nothing is written after the end, waiting or sent", () => {
  for (const window of [0, 100]) {
    const { rig, stream } = answered(window);
    send(stream, "abc", true);
    send(stream, "more");
    stream.sendHeaders(trailers, true);
    rig.peer.sends(...(window === 0 ? [windowUpdate(1, 100)] : []));
    rig.peer.expects(data(1, "abc", "end"));
  }
});

test("a reset forgets what waits, is sent once, and nothing follows it", () => {
  const { rig, stream, ear } = answered(0);
  send(stream, "abc");
  stream.reset(errorCode.CANCEL);
  stream.reset(errorCode.INTERNAL_ERROR);
  send(stream, "more", true);
  stream.sendHeaders(trailers, true);
  stream.growReceiveWindow(1_000_000);
  rig.clock.turn();
  rig.peer.expects(reset(1, "CANCEL"));
  assert.is(rig.session.queuedBytes, 0);
  assert.equal(ear.lines, ["GET / end"]);
});

test("a peer's reset drops what waits, and notifies the owner once", () => {
  const { rig, stream, ear } = answered(0);
  send(stream, "abc", true);
  rig.peer.sends(reset(1, "CANCEL"));
  rig.peer.expectsNothing();
  assert.is(rig.session.queuedBytes, 0);
  assert.equal(ear.lines, ["GET / end", `reset ${errorCode.CANCEL}`]);
});

test("an owner may reset from within `sent`, and from within `data`", () => {
  const { rig, stream, ear } = answered(5);
  ear.onSent = () => stream.reset(errorCode.CANCEL);
  send(stream, "0123456789", true);
  rig.clock.turn();
  rig.peer.expects(data(1, "01234"), reset(1, "CANCEL"));
  rig.peer.sends(headers(3).post("/upload"));
  const upload = rig.last;
  upload.ear.onData = () => upload.stream.reset(errorCode.CANCEL);
  rig.peer.sends(data(3, "x", "end"));
  rig.peer.expects(reset(3, "CANCEL"));
  assert.is(rig.session.openCount, 0);
});

test("an owner may send more from within `sent`", () => {
  const { rig, stream, ear } = answered(10);
  let left = 3;
  ear.onSent = () => {
    if (left-- > 0) send(stream, `${left}`, left === 0);
  };
  send(stream, "abcdefghijkl");
  rig.peer.sends(windowUpdate(1, 100));
  assert.is(rig.peer.body(1).toString(), "abcdefghijkl210");
  assert.ok(rig.peer.hasEnded(1));
});

test("an owner may answer whole from within `data` and `headers`", () => {
  for (const last of [data(1, "x", "end"), headers(1).trailers(["a", "b"])]) {
    const rig = serverRig();
    rig.peer.sends(headers(1).post("/"));
    const { stream, ear } = rig.last;
    ear.onData = ear.onHeaders = () => stream.sendHeaders(ok, true);
    rig.peer.sends(last);
    rig.peer.expects("HEADERS 1 :status=200 END");
    assert.is(rig.session.openCount, 0);
  }
});

test("growing the receive window announces the difference, and shrinking nothing", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  const { stream } = rig.last;
  stream.growReceiveWindow(h2Limits.streamWindowBytes + 1000);
  stream.growReceiveWindow(upstreamLimits.streamWindowTightBytes);
  rig.clock.turn();
  rig.peer.expects(windowUpdate(1, 1000));
});

test("no update is sent for a stream whose peer has ended its half", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  const body = Buffer.alloc(16_384);
  for (let count = 0; count < 7; count++) rig.peer.sends(data(1, body));
  rig.peer.sends(data(1, body, "end"));
  rig.last.stream.grant(8 * 16_384);
  rig.clock.turn();
  assert.is(rig.peer.granted(1), 0);
});

test("however a stream with DATA that waits ends, its blocks are given back", () => {
  const before = takenBlocks();
  const ends: readonly ((opened: ReturnType<typeof answered>) => void)[] = [
    ({ rig }) => rig.peer.sends(windowUpdate(1, 1_000_000)),
    ({ stream }) => stream.reset(errorCode.CANCEL),
    ({ rig }) => rig.peer.sends(reset(1, "CANCEL")),
    ({ rig }) => rig.session.lose(),
    ({ stream }) => stream.close(),
    ({ rig, stream, ear }) => {
      ear.onSent = () => stream.reset(errorCode.CANCEL);
      rig.peer.sends(windowUpdate(1, 20_000));
    },
  ];
  for (const end of ends) {
    const opened = answered(0);
    for (const size of [1, 3000, 5000, 16_384, 65_536, 100_000])
      opened.stream.sendData(Buffer.alloc(size), 0, size, size === 100_000);
    assert.ok(takenBlocks() >= before + 13, `${takenBlocks()} blocks`);
    end(opened);
    opened.rig.clock.turn();
    assert.is(takenBlocks(), before, String(end));
  }
});

test("what waits is a copy, however long it is, and arrives as it was", () => {
  const { rig, stream } = answered(0);
  const sent = Buffer.from(Array.from({ length: 200_000 }, (_, at) => (at * 7 + (at >> 8)) & 255));
  const chunk = Buffer.alloc(65_536);
  for (let from = 0; from < sent.length; from += chunk.length) {
    const count = sent.copy(chunk, 0, from, from + chunk.length);
    stream.sendData(chunk, 0, count, from + count === sent.length);
  }
  chunk.fill(0);
  for (let update = 0; update < 40; update += 1) rig.peer.sends(windowUpdate(1, 5001));
  assert.ok(rig.peer.body(1).equals(sent));
  assert.ok(rig.peer.hasEnded(1));
});

test("a step that RFC 9113 §5.1 forbids is STREAM_CLOSED, and changes nothing", () => {
  const { stream } = answered();
  assert.throws(
    () => stream.step("receive-data"),
    (error: unknown) =>
      error instanceof ProtocolError && error.code === errorCode.STREAM_CLOSED && error.scope === "stream",
  );
  assert.is(stream.state, "half-closed-remote");
});

test.run();
