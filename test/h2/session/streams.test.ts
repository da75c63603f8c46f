import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import {
  data,
  type Fields,
  type Frame,
  headers,
  raw,
  reset,
  settings,
  windowUpdate,
} from "../../support/h2-frames.ts";
import { fieldsOf, lastLine, serverRig } from "../../support/h2-session.ts";

const test = suite("h2/session/streams");

const ok = fieldsOf([[":status", "200"]]);

test("a request opens a stream, its body follows, and an answer ends it", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/api", ["content-length", "5"]), data(1, "hel"), data(1, "lo", "end"));
  const { stream, ear } = rig.last;
  assert.equal(ear.lines, ["POST /api", "end"]);
  assert.is(ear.body.toString(), "hello");
  stream.sendHeaders(ok, false);
  stream.sendData(Buffer.from("fine"), 0, 4, true);
  rig.clock.turn();
  rig.peer.expects("HEADERS 1 :status=200", data(1, "fine", "end"));
  assert.is(rig.session.openCount, 0);
});

test("400 groups, a 12 KiB token and 30 cookies pass unmerged and in order (A8)", () => {
  const rig = serverRig();
  const fields: Fields = [
    ...Array.from({ length: 400 }, (_, index) => ["impersonate-group", `group-${index}`] as const),
    ["authorization", `Bearer ${"t".repeat(12_288)}`],
    ...Array.from({ length: 30 }, (_, index) => ["cookie", `c${index}=${index}`] as const),
  ];
  const whole = headers(1).get("/api", ...fields);
  const frames: Frame[] = [];
  for (let from = 0; from < whole.payload.length; from += 16_384) {
    const payload = whole.payload.subarray(from, from + 16_384);
    const last = from + 16_384 >= whole.payload.length ? 4 : 0;
    frames.push(from === 0 ? { ...whole, flags: 1 | last, payload } : raw(9, last, 1, payload));
  }
  rig.peer.sends(frames);
  assert.equal(
    rig.last.ear.request?.fields.slice(4).map(({ name, value }) => [name, value]),
    fields,
  );
});

const longHeadAnswer = [
  "HEADERS 1 :status=431 content-type=application/json content-length=201",
  "DATA 1 201 bytes END",
];

test("a header list of 3,000 fields is within the limit of bytes, so it opens a stream", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/a", ...Array.from({ length: 3000 }, () => ["x", "1"] as const)));
  assert.is(rig.last.ear.request?.fields.length, 3004);
});

test("a header list that is too long is answered 431 once, then the session ends calmly", () => {
  const rig = serverRig();
  const long = Array.from({ length: 3990 }, () => ["x", ""] as const);
  rig.peer.sends(headers(1).get("/a", ...long));
  rig.peer.expects(...longHeadAnswer);
  assert.is(rig.opened.length, 0);
  rig.peer.sends(headers(3).get("/fine"));
  assert.is(rig.opened.length, 1);
  rig.peer.sends(headers(5).get("/b", ...long));
  assert.is(lastLine(rig), "GOAWAY 5 ENHANCE_YOUR_CALM");
});

test("a 431 for a request whose body is on its way lets the body pass", () => {
  const rig = serverRig();
  const long = Array.from({ length: 3990 }, () => ["x", ""] as const);
  rig.peer.sends(headers(1).post("/a", ...long));
  rig.peer.expects(...longHeadAnswer, reset(1, "NO_ERROR"));
  rig.peer.sends(data(1, "body"), data(1, "more", "end"));
  rig.peer.expectsNothing();
  assert.not(rig.session.isOver);
});

test("the hundred-and-first stream is refused and may be sent again; a hundred refused end the session (A3)", () => {
  const rig = serverRig();
  for (let index = 0; index < 100; index++) rig.peer.sends(headers(2 * index + 1).get("/watch"));
  rig.peer.heard();
  rig.peer.sends(headers(201).post("/one-more"), data(201, "its body", "end"));
  rig.peer.expects(reset(201, "REFUSED_STREAM"));
  assert.is(rig.opened.length, 100);
  rig.peer.sends(reset(1, "CANCEL"), headers(203).get("/fits"));
  assert.is(rig.opened.length, 101);
  rig.peer.heard();
  for (let index = 0; index < 100; index++) rig.peer.sends(headers(205 + 2 * index).get("/watch"));
  assert.not(rig.session.isOver);
  rig.peer.sends(headers(405).get("/watch"));
  assert.is(lastLine(rig), "GOAWAY 405 ENHANCE_YOUR_CALM");
});

const malformed: readonly (readonly [string, Frame[]])[] = [
  ["content-length without a body", [headers(1).get("/", ["content-length", "5"])]],
  [
    "a body longer than its content-length",
    [headers(1).post("/", ["content-length", "5"]), data(1, "sixsix")],
  ],
  [
    "a body shorter than its content-length",
    [headers(1).post("/", ["content-length", "5"]), data(1, "four", "end")],
  ],
  [
    "a short body that trailers end",
    [headers(1).post("/", ["content-length", "5"]), data(1, "four"), headers(1).trailers(["a", "b"])],
  ],
  ["a second head that does not end the stream", [headers(1).post("/"), headers(1).of([["a", "b"]])]],
  ["a content-length with a plus", [headers(1).post("/", ["content-length", "+5"])]],
  ["two content-lengths", [headers(1).post("/", ["content-length", "5"], ["content-length", "5"])]],
  ["an upper-case name", [headers(1).get("/", ["Accept", "x"])]],
  ["a line feed in a value", [headers(1).get("/", ["a", "b\nc"])]],
  ["transfer-encoding", [headers(1).post("/", ["transfer-encoding", "chunked"])]],
  ["a pseudo-field in trailers", [headers(1).post("/"), headers(1).trailers([":path", "/other"])]],
];
for (const [what, frames] of malformed) {
  test(`${what} costs its stream, at once and on both sides, and no other (A27-A29)`, () => {
    const rig = serverRig();
    rig.peer.sends(...frames);
    rig.peer.expects(reset(1, "PROTOCOL_ERROR"));
    for (const { ear } of rig.opened) assert.is(ear.lines.at(-1), `reset ${errorCode.PROTOCOL_ERROR}`);
    assert.is(rig.session.openCount, 0);
    rig.peer.sends(headers(3).get("/fine"));
    assert.equal(rig.last.ear.lines, ["GET /fine end"]);
  });
}

const sessionErrors: readonly (readonly [string, string, Frame[]])[] = [
  ["an even stream", "GOAWAY 0 PROTOCOL_ERROR", [headers(2).get("/")]],
  ["DATA on an idle stream", "GOAWAY 0 PROTOCOL_ERROR", [data(1, "x")]],
  ["RST_STREAM on an idle stream", "GOAWAY 0 PROTOCOL_ERROR", [reset(1, "CANCEL")]],
  ["WINDOW_UPDATE on an idle stream", "GOAWAY 0 PROTOCOL_ERROR", [windowUpdate(1, 5)]],
  ["WINDOW_UPDATE of 0 on a stream", "GOAWAY 1 PROTOCOL_ERROR", [headers(1).get("/"), windowUpdate(1, 0)]],
  ["WINDOW_UPDATE of 0 on the session", "GOAWAY 0 PROTOCOL_ERROR", [windowUpdate(0, 0)]],
  ["a session window beyond 2^31 - 1", "GOAWAY 0 FLOW_CONTROL_ERROR", [windowUpdate(0, 0x7fff_ffff)]],
  [
    "DATA after the peer's own reset",
    "GOAWAY 1 STREAM_CLOSED",
    [headers(1).post("/"), reset(1, "CANCEL"), data(1, "x")],
  ],
  [
    "HEADERS after the peer's own reset",
    "GOAWAY 1 STREAM_CLOSED",
    [headers(1).post("/"), reset(1, "CANCEL"), headers(1).trailers(["a", "b"])],
  ],
];
for (const [what, line, frames] of sessionErrors) {
  test(`${what} ends the session`, () => {
    const rig = serverRig();
    rig.peer.sends(...frames);
    assert.is(lastLine(rig), line);
  });
}

for (const [what, frame] of [
  ["DATA", data(1, "x")],
  ["HEADERS", headers(1).trailers(["a", "b"])],
] as const) {
  test(`${what} after END_STREAM is STREAM_CLOSED: of the stream while it lives, of the session after (§5.1)`, () => {
    const rig = serverRig();
    rig.peer.sends(headers(1).get("/"), frame);
    rig.peer.expects(reset(1, "STREAM_CLOSED"));
    assert.equal(rig.last.ear.lines, ["GET / end", `reset ${errorCode.STREAM_CLOSED}`]);
    rig.peer.sends(headers(3).get("/"));
    rig.last.stream.sendHeaders(ok, true);
    rig.peer.sends({ ...frame, id: 3 });
    assert.is(lastLine(rig), "GOAWAY 3 STREAM_CLOSED");
  });
}

test("a stream window beyond 2^31 - 1 costs the stream (A20)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/"), windowUpdate(1, 0x7fff_ffff));
  rig.peer.expects(reset(1, "FLOW_CONTROL_ERROR"));
  assert.not(rig.session.isOver);
});

test("SETTINGS that would lift a stream's window beyond 2^31 - 1 end the session (§6.9.2)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/"), windowUpdate(1, 0x7fff_0000));
  rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: 0x7fff_ffff }));
  assert.is(lastLine(rig), "GOAWAY 1 FLOW_CONTROL_ERROR");
});

test("WINDOW_UPDATE for a stream that has closed is nothing", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/"));
  rig.last.stream.sendHeaders(ok, true);
  rig.peer.sends(windowUpdate(1, 100));
  rig.peer.expects("HEADERS 1 :status=200 END");
});

test.run();
