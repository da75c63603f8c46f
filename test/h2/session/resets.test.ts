/** Resets by either side, the frames that are in flight at that time, and the cost of resets (A1, A2, A15). */

import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { data, headers, reset, windowUpdate } from "../../support/h2-frames.ts";
import { clientRig, Ear, fieldsOf, lastLine, serverRig } from "../../support/h2-session.ts";

const test = suite("h2/session/resets");

const ok = fieldsOf([[":status", "200"]]);
const request = fieldsOf([
  [":method", "POST"],
  [":scheme", "https"],
  [":path", "/api"],
  [":authority", "api"],
]);

function at<T>(list: readonly T[], index: number): T {
  const one = list.at(index);
  if (one === undefined) throw new Error(`Nothing at ${index}`);
  return one;
}

test("what is under way for a stream that the session reset is let pass: body, trailers, cancel (§5.1)", () => {
  for (const late of [
    [data(1, "more"), data(1, "last", "end")],
    [data(1, "more"), headers(1).trailers(["a", "b"])],
    [windowUpdate(1, 5), data(1, ""), reset(1, "CANCEL")],
  ]) {
    const rig = serverRig();
    rig.peer.sends(headers(1).post("/upload"), headers(3).get("/watch"), data(1, "some"));
    at(rig.opened, 0).stream.reset(errorCode.INTERNAL_ERROR);
    rig.clock.turn();
    rig.peer.expects(reset(1, "INTERNAL_ERROR"));
    rig.peer.sends(...late);
    rig.peer.expectsNothing();
    assert.not(rig.session.isOver);
    assert.equal(at(rig.opened, 1).ear.lines, ["GET /watch end"]);
  }
});

test("an answer that is complete before its request may be followed by NO_ERROR, and the upload by silence (§8.1)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/upload"), data(1, "some"));
  const { stream } = rig.last;
  stream.sendHeaders(ok, true);
  stream.reset(errorCode.NO_ERROR);
  rig.peer.sends(data(1, "more"), data(1, "last", "end"));
  rig.peer.expects("HEADERS 1 :status=200 END", reset(1, "NO_ERROR"));
  assert.not(rig.session.isOver);
});

test("after a whole request nothing is under way, so nothing is forgiven", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).get("/"));
  rig.last.stream.reset(errorCode.CANCEL);
  rig.peer.sends(data(1, "x"));
  assert.is(lastLine(rig), "GOAWAY 1 STREAM_CLOSED");
});

test("what was forgiven once is not forgiven for ever (A15)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/upload"));
  rig.last.stream.reset(errorCode.CANCEL);
  rig.peer.sends(data(1, "last", "end"));
  assert.not(rig.session.isOver);
  rig.peer.sends(data(1, "x"));
  assert.is(lastLine(rig), "GOAWAY 1 STREAM_CLOSED");
});

test("requests that are cancelled before their answer end the session beyond the budget (A1)", () => {
  const rig = serverRig();
  for (let id = 1; id < 1001 && !rig.session.isOver; id += 2)
    rig.peer.sends(headers(id).get("/"), reset(id, "CANCEL"));
  assert.is(
    lastLine(rig),
    `GOAWAY ${2 * h2Limits.resetBurst * 2 + 1} ENHANCE_YOUR_CALM`.replace(
      /\d+/,
      String(rig.opened.at(-1)?.stream.id),
    ),
  );
  assert.ok(rig.opened.length <= 2 * h2Limits.resetBurst + 1);
});

test("a hundred answered watches cancelled at once, again and again, cost nothing (A1's honest twin)", () => {
  const rig = serverRig();
  let id = 1;
  for (let round = 0; round < 20; round++) {
    const first = id;
    for (let count = 0; count < 100; count++, id += 2) {
      rig.peer.sends(headers(id).get("/watch"));
      rig.last.stream.sendHeaders(ok, false);
    }
    for (let watch = first; watch < id; watch += 2) rig.peer.sends(reset(watch, "CANCEL"));
  }
  assert.not(rig.session.isOver);
  assert.is(rig.session.openCount, 0);
});

test("a hundred streams that the session reset while their client cancels them cost it nothing", () => {
  const rig = serverRig();
  let id = 1;
  for (let round = 0; round < 20; round++) {
    const first = id;
    for (let count = 0; count < 100; count++, id += 2) rig.peer.sends(headers(id).post("/"));
    for (const { stream } of rig.opened.slice(-100)) stream.reset(errorCode.INTERNAL_ERROR);
    for (let stream = first; stream < id; stream += 2) rig.peer.sends(reset(stream, "CANCEL"));
  }
  assert.not(rig.session.isOver);
});

test("provoking resets costs the same budget (A2)", () => {
  const rig = serverRig();
  for (let id = 1; id < 1001 && !rig.session.isOver; id += 2)
    rig.peer.sends(headers(id).get("/"), windowUpdate(id, 0x7fff_ffff));
  assert.match(lastLine(rig) ?? "", "ENHANCE_YOUR_CALM");
});

test("RST_STREAM again and again on a closed stream ends the session (A15)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  rig.last.stream.reset(errorCode.CANCEL);
  for (let count = 0; count < 500 && !rig.session.isOver; count++) rig.peer.sends(reset(1, "CANCEL"));
  assert.is(lastLine(rig), "GOAWAY 1 ENHANCE_YOUR_CALM");
});

test("a backend's resets and the proxy's own cost an upstream connection no budget", () => {
  const rig = clientRig();
  for (let count = 0; count < 500; count++) {
    const id = rig.session.open(request, true, new Ear()).id;
    rig.peer.sends(reset(id, "INTERNAL_ERROR"), reset(id, "CANCEL"));
  }
  assert.not(rig.session.isOver);
});

test.run();
