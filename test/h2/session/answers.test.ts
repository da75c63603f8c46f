/** Which responses a backend may send on an upstream connection, and which are never passed on (A29, A37). */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { data, type Frame, headers } from "../../support/h2-frames.ts";
import {
  clientRig,
  Ear,
  fieldsOf,
  lastLine,
  type Opened,
  type SessionRig,
} from "../../support/h2-session.ts";

const test = suite("h2/session/answers");

const request = fieldsOf([
  [":method", "POST"],
  [":scheme", "https"],
  [":path", "/api"],
  [":authority", "api"],
]);

function asked(rig: SessionRig, isHead = false): Opened {
  const ear = new Ear();
  const stream = rig.session.open(request, true, ear, isHead);
  rig.clock.turn();
  rig.peer.heard();
  return { stream, ear };
}

test("interim heads, a head, a body and trailers come in this order", () => {
  const rig = clientRig();
  const { ear } = asked(rig);
  rig.peer.sends(
    headers(1).status(103, ["link", "</a>"]),
    headers(1).status(200),
    data(1, "body"),
    headers(1).trailers(["grpc-status", "0"]),
  );
  assert.equal(ear.lines, [
    "headers :status=103 link=</a>",
    "headers :status=200",
    "headers grpc-status=0 end",
  ]);
  assert.is(ear.body.toString(), "body");
  assert.is(rig.session.openCount, 0);
});

const badAnswers: readonly (readonly [string, Frame[]])[] = [
  ["a body before its head", [data(1, "x")]],
  ["a body after an interim head", [headers(1).status(100), data(1, "x")]],
  ["an interim head that ends its stream", [headers(1).statusOnly(103)]],
  ["a seventeenth interim head (A37)", Array.from({ length: 17 }, () => headers(1).status(103))],
  ["a content-length without a body", [headers(1).statusOnly(200, ["content-length", "5"])]],
  ["a body beyond its content-length", [headers(1).status(200, ["content-length", "5"]), data(1, "sixsix")]],
  [
    "a body short of its content-length",
    [headers(1).status(200, ["content-length", "5"]), data(1, "four", "end")],
  ],
  ["a body to a 304", [headers(1).status(304), data(1, "x", "end")]],
  ["two heads", [headers(1).status(200), headers(1).status(200)]],
  ["a field with a line feed", [headers(1).status(200, ["a", "b\nc"])]],
];
for (const [what, frames] of badAnswers) {
  test(`${what} is not passed on: the stream is reset on both sides`, () => {
    const rig = clientRig();
    const { ear } = asked(rig);
    rig.peer.sends(...frames);
    assert.is(rig.peer.heard().at(-1), "RST_STREAM 1 PROTOCOL_ERROR");
    assert.is(ear.lines.at(-1), `reset ${errorCode.PROTOCOL_ERROR}`);
    assert.not(rig.session.isOver);
    rig.peer.sends(data(1, "late"), headers(1).trailers(["a", "b"]));
    assert.not(rig.session.isOver);
  });
}

test("a HEAD's answer and a 304 promise a body that does not come (RFC 9110 §8.6)", () => {
  const rig = clientRig();
  const head = asked(rig, true);
  rig.peer.sends(headers(1).statusOnly(200, ["content-length", "500"]));
  const cached = asked(rig);
  rig.peer.sends(headers(3).statusOnly(304, ["content-length", "500"]));
  assert.equal(head.ear.lines, ["headers :status=200 content-length=500 end"]);
  assert.equal(cached.ear.lines, ["headers :status=304 content-length=500 end"]);
});

test("HEADERS on a stream that an upstream connection never opened end the session", () => {
  for (const id of [1, 2]) {
    const rig = clientRig();
    rig.peer.sends(headers(id).status(200));
    assert.is(lastLine(rig), "GOAWAY 0 PROTOCOL_ERROR");
  }
});

test.run();
