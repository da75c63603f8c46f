import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode, lost } from "../../../src/h2/core/protocol-error.ts";
import {
  continued,
  data,
  type Frame,
  goAway,
  headers,
  ping,
  pong,
  preface,
  priority,
  raw,
  reset,
  settings,
  settingsAck,
  windowUpdate,
  wire,
} from "../../support/h2-frames.ts";
import { clientRig, Ear, fieldsOf, SessionRig, serverRig } from "../../support/h2-session.ts";

const test = suite("h2/session/session");

const get = fieldsOf([
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/api"],
  [":authority", "api"],
]);

/** Fails unless the session ended with this error and reported that once. */
function endedWith(rig: SessionRig, code: string, lastId: number): void {
  rig.clock.turn();
  assert.equal(rig.peer.heard().at(-1), `GOAWAY ${lastId} ${code}`);
  assert.ok(rig.session.isOver);
  assert.is(rig.lines.filter((line) => line.startsWith("ended")).length, 1);
  rig.peer.sends(ping(99), headers(99).get("/late"));
  rig.peer.expectsNothing();
}

// --- first frames ---

test("a server sends its settings, and opens its window", () => {
  const rig = new SessionRig("server", 7);
  rig.clock.turn();
  rig.peer.expects(
    `SETTINGS MAX_CONCURRENT_STREAMS=7 INITIAL_WINDOW_SIZE=${h2Limits.streamWindowBytes} MAX_HEADER_LIST_SIZE=${limits.headerListBytes}`,
    windowUpdate(0, h2Limits.downstreamWindowBytes - 65_535),
  );
});

test("a client sends its preface, refuses push, and is settled once the server's SETTINGS came", () => {
  const rig = new SessionRig("client");
  rig.clock.turn();
  rig.peer.expects(
    `SETTINGS ENABLE_PUSH=0 INITIAL_WINDOW_SIZE=${h2Limits.streamWindowBytes} MAX_HEADER_LIST_SIZE=${limits.headerListBytes}`,
    windowUpdate(0, h2Limits.connectionWindowBytes - 65_535),
  );
  assert.not(rig.session.isSettled);
  rig.peer.sends(settings({ MAX_CONCURRENT_STREAMS: 250 }));
  rig.peer.expects(settingsAck());
  assert.ok(rig.session.isSettled);
  assert.is(rig.session.peerMaxStreams, 250);
});

test("the same greeting in single bytes is the same", () => {
  const rig = new SessionRig("server");
  rig.clock.turn();
  rig.peer.heard();
  for (const octet of Buffer.from(preface)) rig.peer.sendsBytes(Buffer.from([octet]));
  rig.peer.sendsInPieces(1, settings(), headers(1).get("/api"));
  rig.peer.expects(settingsAck());
  assert.equal(rig.last.ear.lines, ["GET /api end"]);
});

test("a request before SETTINGS ends the session (§3.4)", () => {
  const rig = new SessionRig("server");
  rig.peer.sendsBytes(Buffer.concat([Buffer.from(preface), wire(headers(1).get("/"))]));
  endedWith(rig, "PROTOCOL_ERROR", 0);
});

// --- one flush per tick ---

test("whatever a turn writes goes out in one flush", () => {
  const rig = serverRig();
  rig.writes = 0;
  rig.peer.sends(ping(1), headers(1).get("/a"), headers(3).get("/b"), settings(), ping(2));
  assert.is(rig.writes, 1);
  rig.peer.expects(pong(1), pong(2), settingsAck());
});

test("a PING is answered before the DATA of its turn, and the session's own number comes back", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/"));
  rig.last.stream.sendHeaders(fieldsOf([[":status", "200"]]), false);
  rig.last.stream.sendData(Buffer.alloc(3000), 0, 3000, false);
  const number = rig.session.sendPing();
  rig.peer.sends(ping(7));
  rig.peer.expects(ping(number), pong(7), "HEADERS 1 :status=200", "DATA 1 3000 bytes");
  rig.peer.sends(pong(number));
  assert.equal(rig.lines, [`ponged ${number}`]);
});

test("SETTINGS that shrink a window bind what is written after their acknowledgement, not before (§6.5.3)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/"));
  rig.last.stream.sendHeaders(fieldsOf([[":status", "200"]]), false);
  rig.last.stream.sendData(Buffer.alloc(10_000), 0, 10_000, false);
  rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: 5000 }));
  rig.peer.expects("HEADERS 1 :status=200", "DATA 1 10000 bytes", settingsAck());
});

// --- deadlines ---

test("without SETTINGS a session ends after ten seconds (A22)", () => {
  const rig = new SessionRig("server");
  rig.peer.sendsBytes(Buffer.from(preface.slice(0, 10)));
  rig.clock.advance(h2Limits.prefaceMs);
  rig.session.check();
  assert.not(rig.session.isOver);
  rig.clock.advance(1);
  rig.session.check();
  endedWith(rig, "SETTINGS_TIMEOUT", 0);
});

test("a frame that is begun and not finished ends the session after thirty seconds (A18)", () => {
  const rig = serverRig();
  rig.peer.sendsBytes(wire(ping(1)).subarray(0, 13));
  rig.clock.advance(h2Limits.frameMs);
  rig.session.check();
  assert.not(rig.session.isOver);
  rig.clock.advance(1);
  rig.session.check();
  endedWith(rig, "PROTOCOL_ERROR", 0);
});

test("a header block that dribbles ends the session after ten seconds, however often a byte comes (A6)", () => {
  const rig = serverRig();
  const frames = continued(headers(1).get("/"), 1, 1, 1, 1, 1, 1, 1).map((frame) => wire(frame));
  for (const bytes of frames.slice(0, 7)) {
    rig.peer.sendsBytes(bytes);
    rig.clock.advance(1500);
    rig.session.check();
  }
  endedWith(rig, "PROTOCOL_ERROR", 0);
});

test("a busy session whose chunks never end with a frame lives on (A18's honest twin)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/upload"));
  const chunk = wire(data(1, Buffer.alloc(4000)));
  rig.peer.sendsBytes(chunk.subarray(0, 3000));
  for (let second = 0; second < 100; second++) {
    rig.peer.sendsBytes(Buffer.concat([chunk.subarray(3000), chunk.subarray(0, 3000)]));
    rig.last.stream.grant(4000);
    rig.clock.advance(1000);
    rig.session.check();
    assert.not(rig.session.isOver);
  }
});

test("an upload of one byte in ten seconds lives on (A23)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/upload"));
  for (const octet of wire(data(1, Buffer.alloc(100)))) {
    rig.peer.sendsBytes(Buffer.from([octet]));
    rig.clock.advance(3000);
  }
  const large = wire(data(1, Buffer.alloc(9000)));
  rig.peer.sendsBytes(large.subarray(0, 5000));
  for (let at = 5000; at < 5020; at++) {
    rig.clock.advance(10_000);
    rig.session.check();
    rig.peer.sendsBytes(large.subarray(at, at + 1));
  }
  assert.not(rig.session.isOver);
});

test("an idle session has no deadline", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/watch"));
  rig.clock.advance(24 * 3_600_000);
  rig.session.check();
  assert.not(rig.session.isOver);
});

// --- floods ---

type Flood = readonly [what: string, frame: (at: number) => Frame, honest: number, hostile: number];
const floods: readonly Flood[] = [
  ["PING (A14)", (at) => ping(at), 99, 201],
  ["SETTINGS (A12)", () => settings(), 99, 201],
  ["acknowledgements of SETTINGS (A12)", () => settingsAck(), 99, 201],
  ["PRIORITY on idle streams (A15)", (at) => priority(2 * at + 1001, 0), 100, 201],
  ["WINDOW_UPDATE (A15)", () => windowUpdate(0, 1), 1000, 3000],
  ["unknown frames (A17)", () => raw(0x0b, 0, 0, Buffer.alloc(16_384)), 60, 130],
  ["empty frames of padding (A16)", () => raw(0, 8, 1, Buffer.alloc(1)), 100, 201],
  ["empty DATA (A16)", () => data(1, ""), 100, 201],
];
for (const [what, frame, honest, hostile] of floods) {
  test(`${what}: ${honest} pass, ${hostile} at once end the session calmly`, () => {
    const rig = serverRig();
    rig.peer.sends(headers(1).post("/upload"));
    for (let at = 0; at < honest; at++) rig.peer.sends(frame(at));
    assert.not(rig.session.isOver);
    for (let at = honest; at < hostile && !rig.session.isOver; at++) rig.peer.sends(frame(at));
    endedWith(rig, "ENHANCE_YOUR_CALM", 1);
    assert.equal(rig.last.ear.lines, ["POST /upload", `reset ${lost}`]);
  });
}

test("a client that pings every second for a day lives on", () => {
  const rig = serverRig();
  for (let second = 0; second < 86_400; second += 60) {
    for (let at = 0; at < 60; at++) rig.session.receive(wire(ping(at)));
    rig.clock.advance(60_000);
  }
  assert.not(rig.session.isOver);
});

test("SETTINGS of more than 32 entries end the session calmly (A12)", () => {
  const rig = serverRig();
  rig.peer.sends(raw(4, 0, 0, Buffer.alloc(6 * 32)));
  assert.not(rig.session.isOver);
  rig.peer.heard();
  rig.peer.sends(raw(4, 0, 0, Buffer.alloc(6 * 33)));
  endedWith(rig, "ENHANCE_YOUR_CALM", 0);
});

test("windows toggled a hundred times with a hundred streams open end the session, and cost little before (A13)", () => {
  const rig = serverRig();
  for (let at = 0; at < 100; at++) rig.peer.sends(headers(2 * at + 1).get("/watch"));
  for (let at = 0; at < 300 && !rig.session.isOver; at++)
    rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: at % 2 === 0 ? 0 : 0x7fff_ffff }));
  endedWith(rig, "ENHANCE_YOUR_CALM", 199);
});

test("a stream that depends on itself ends the session (A2)", () => {
  const rig = serverRig();
  rig.peer.sends(priority(5, 5));
  endedWith(rig, "PROTOCOL_ERROR", 0);
});

// --- going away ---

test("a graceful end in two steps loses nothing that was under way", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/watch"));
  rig.session.announceEnd();
  rig.clock.turn();
  rig.peer.expects(goAway(0x7fff_ffff));
  rig.peer.sends(headers(3).get("/crossed"));
  assert.is(rig.opened.length, 2);
  rig.session.goAway();
  rig.clock.turn();
  rig.peer.expects(goAway(3));
  for (const { stream } of rig.opened) stream.sendHeaders(fieldsOf([[":status", "200"]]), true);
  rig.clock.turn();
  assert.equal(rig.lines, ["ended well"]);
});

test("a session without streams is over with its GOAWAY", () => {
  const rig = serverRig();
  rig.session.goAway();
  rig.clock.turn();
  rig.peer.expects(goAway(0));
  assert.equal(rig.lines, ["ended well"]);
});

test("what crosses the session's own GOAWAY is ignored whole, body, trailers, cancel and all, and costs no stream below it", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/watch"));
  rig.session.goAway();
  rig.clock.turn();
  rig.peer.expects(goAway(1));
  rig.peer.sends(
    headers(3).post("/late"),
    data(3, "body"),
    windowUpdate(3, 10),
    headers(3).trailers(["a", "b"]),
    reset(3, "CANCEL"),
  );
  rig.peer.sends(headers(7).post("/later"), reset(7, "CANCEL"), headers(5).get("/odd"));
  rig.peer.expectsNothing();
  assert.is(rig.opened.length, 1);
  assert.not(rig.session.isOver);
});

test("HPACK stays right over streams that are ignored", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/watch"));
  rig.session.goAway();
  rig.clock.turn();
  // This header block adds `a: b` to the dynamic table.
  rig.peer.sends(raw(1, 5, 3, Buffer.concat([headers(3).get("/x").payload, Buffer.from("\x40\x01a\x01b")])));
  rig.peer.heard();
  rig.peer.sends(raw(1, 5, 5, Buffer.from([0xbe])));
  rig.peer.expectsNothing();
});

test("a client's GOAWAY leaves its own streams alone, and the session is over when they are (§6.8)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/watch"), goAway(0));
  assert.equal(rig.last.ear.lines, ["GET /watch end"]);
  rig.last.stream.sendHeaders(fieldsOf([[":status", "200"]]), true);
  rig.clock.turn();
  rig.peer.expects("HEADERS 1 :status=200 END");
  assert.equal(rig.lines, ["ended well"]);
});

test("a server's GOAWAY: streams above its last id were refused, those below live on", () => {
  const rig = clientRig();
  const ears = [new Ear(), new Ear(), new Ear()];
  for (const ear of ears) rig.session.open(get, true, ear);
  rig.clock.turn();
  rig.peer.heard();
  rig.peer.sends(goAway(3, "NO_ERROR"));
  assert.equal(
    ears.map((ear) => ear.lines),
    [[], [], ["reset 7"]],
  );
  assert.not(rig.session.isOpen);
  rig.peer.sends(goAway(1));
  assert.equal(
    ears.map((ear) => ear.lines),
    [[], ["reset 7"], ["reset 7"]],
  );
  rig.peer.sends(headers(1).statusOnly(200));
  assert.equal(ears[0]?.lines, ["headers :status=200 end"]);
  assert.equal(rig.lines, ["ended well"]);
});

test("two steps of a server: the first refuses nothing, but no stream is opened any more", () => {
  const rig = clientRig();
  const ear = new Ear();
  rig.session.open(get, true, ear);
  rig.peer.sends(goAway(0x7fff_ffff));
  assert.not(rig.session.isOpen);
  assert.equal(ear.lines, []);
});

// --- lost connections ---

test("a lost session notifies every stream's owner, also when one of them throws", () => {
  const rig = clientRig();
  const ears = [new Ear(), new Ear(), new Ear()];
  for (const ear of ears) rig.session.open(get, true, ear);
  const [, second] = ears;
  assert.ok(second !== undefined);
  second.onReset = () => {
    throw new Error("broken owner");
  };
  rig.session.lose();
  assert.equal(
    ears.map((ear) => ear.lines),
    [[`reset ${lost}`], [`reset ${lost}`], [`reset ${lost}`]],
  );
  assert.equal(rig.lines, ["ended well"]);
  rig.session.lose();
  assert.is(rig.lines.length, 1);
});

test("what an owner throws while DATA comes costs its stream, and the others go on (D10)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/a"), headers(3).post("/b"));
  const [other, struck] = rig.opened.map(({ ear }) => ear);
  rig.last.ear.onData = () => {
    throw new Error("broken owner");
  };
  rig.session.receive(wire(data(3, "x")));
  rig.session.receive(wire(data(1, "y", "end")));
  assert.is(struck?.lines.at(-1), `reset ${errorCode.INTERNAL_ERROR}`);
  assert.equal([other?.body.toString(), rig.session.isOver], ["y", false]);
});

test("an owner that loses the session from within a callback gets no further callback", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/a"));
  const { ear } = rig.last;
  ear.onData = () => rig.session.lose();
  rig.peer.sends(data(1, "x"), data(1, "y", "end"), headers(3).get("/b"));
  assert.equal(ear.lines, ["POST /a", `reset ${lost}`]);
  assert.is(rig.opened.length, 1);
});

test("after a protocol error the peer gets the last stream's id, and every owner is notified", () => {
  const rig = serverRig();
  rig.peer.sends(headers(5).get("/a"));
  rig.peer.sends(raw(6, 0, 0, "short"));
  endedWith(rig, "FRAME_SIZE_ERROR", 5);
  assert.equal(rig.last.ear.lines, ["GET /a end", `reset ${lost}`]);
});

test("a client's PONGs and GOAWAYs cost it like its PINGs (A14)", () => {
  for (const frame of [pong(1), goAway(0)]) {
    const rig = serverRig();
    rig.peer.sends(headers(1).get("/a"));
    rig.peer.sends(
      ...Array.from({ length: h2Limits.controlBurst + h2Limits.framesPerStream + 1 }, () => frame),
    );
    endedWith(rig, "ENHANCE_YOUR_CALM", 1);
  }
});

test("a client opens odd streams, each two above the one before", () => {
  const rig = clientRig();
  assert.ok(rig.session.isOpen);
  assert.is(rig.session.open(get, true, new Ear()).id, 1);
  assert.is(rig.session.open(get, true, new Ear()).id, 3);
});

test.run();
