/** Flow control of received DATA: windows, granted credit, and that no credit is ever lost (A19). */
import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { data, headers, padded, reset, windowUpdate } from "../../support/h2-frames.ts";
import {
  clientRig,
  Ear,
  fieldsOf,
  lastLine,
  type Opened,
  type SessionRig,
  serverRig,
} from "../../support/h2-session.ts";

const test = suite("h2/session/flow-in");

const ok = fieldsOf([[":status", "200"]]);
const request = fieldsOf([
  [":method", "POST"],
  [":scheme", "https"],
  [":path", "/api"],
  [":authority", "api"],
]);

function asked(rig: SessionRig): Opened {
  const ear = new Ear();
  const stream = rig.session.open(request, true, ear);
  rig.clock.turn();
  rig.peer.heard();
  return { stream, ear };
}

test("what a backend sends for a stream that the proxy reset is forgiven as far as its window went, and no further (A60)", () => {
  const rig = clientRig();
  const { stream } = asked(rig);
  rig.peer.sends(headers(1).status(200), data(1, Buffer.alloc(1000)));
  stream.reset(errorCode.CANCEL);
  for (let left = h2Limits.streamWindowBytes - 1000; left > 0; left -= 16_384)
    rig.peer.sends(data(1, Buffer.alloc(Math.min(left, 16_384))));
  rig.clock.turn();
  rig.peer.heard();
  rig.peer.sends(data(1, "x"));
  rig.peer.expects(reset(1, "STREAM_CLOSED"));
  assert.equal(rig.lines, []);
});

test("DATA behind the end of a response is answered with a stream error, and ends the session after 2.5 MB (A60)", () => {
  const rig = clientRig();
  asked(rig);
  rig.peer.sends(headers(1).status(200), data(1, "all", "end"), data(1, "more"));
  rig.peer.expects(reset(1, "STREAM_CLOSED"));
  const cost = 1 + 16_384 / h2Limits.unknownFrameBytes;
  const most = Math.floor((h2Limits.connectionFramesBurst - 2) / cost);
  for (let sent = 0; sent < most; sent += 1) rig.peer.sends(data(1, Buffer.alloc(16_384)));
  assert.equal(rig.lines, []);
  rig.peer.sends(data(1, Buffer.alloc(16_384)));
  assert.equal(rig.lines, [`ended ${errorCode.ENHANCE_YOUR_CALM}`]);
});

test("a body beyond its stream's window costs the stream, beyond the session's the session", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  for (let sent = 0; sent < h2Limits.streamWindowBytes; sent += 16_384)
    rig.peer.sends(data(1, Buffer.alloc(16_384)));
  rig.peer.expectsNothing();
  rig.peer.sends(data(1, "x"));
  rig.peer.expects(reset(1, "FLOW_CONTROL_ERROR"), windowUpdate(0, h2Limits.streamWindowBytes + 1));
  assert.not(rig.session.isOver);
  const wide = serverRig();
  for (const id of [1, 3, 5, 7]) {
    wide.peer.sends(headers(id).post("/"));
    for (let sent = 0; sent < h2Limits.streamWindowBytes; sent += 16_384)
      wide.peer.sends(data(id, Buffer.alloc(16_384)));
  }
  wide.peer.expectsNothing();
  wide.peer.sends(headers(9).post("/"), data(9, "x"));
  assert.is(lastLine(wide), "GOAWAY 9 FLOW_CONTROL_ERROR");
});

test("padding is given back, and widens nothing", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  for (let count = 0; count < 300; count++) rig.peer.sends(padded(data(1, "x"), 255));
  let left = h2Limits.streamWindowBytes + rig.peer.granted(1) - 300 * 257;
  assert.ok(left > (h2Limits.streamWindowBytes * 3) / 4 - 300);
  for (; left > 0; left -= 16_384) rig.peer.sends(data(1, Buffer.alloc(Math.min(left, 16_384))));
  assert.is(rig.last.stream.state, "open");
  rig.peer.sends(data(1, "x"));
  assert.match(rig.peer.heard().join(), "RST_STREAM 1 FLOW_CONTROL_ERROR");
});

test("a client's window is granted as its bytes go on, and not before (A19)", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  for (let sent = 0; sent < 65_536; sent += 16_384) rig.peer.sends(data(1, Buffer.alloc(16_384)));
  rig.peer.expectsNothing();
  rig.last.stream.grant(65_535);
  rig.clock.turn();
  rig.peer.expectsNothing();
  rig.last.stream.grant(1);
  rig.clock.turn();
  rig.peer.expects(windowUpdate(1, 65_536));
});

test("an upstream connection's session window is granted on arrival, its streams' when their bytes have gone on", () => {
  const rig = clientRig();
  const { stream } = asked(rig);
  rig.peer.sends(headers(1).status(200));
  const granted = rig.peer.granted(0);
  const half = h2Limits.streamWindowBytes / 2;
  for (let sent = 0; sent < half; sent += 16_384) rig.peer.sends(data(1, Buffer.alloc(16_384)));
  assert.is(rig.peer.granted(1), 0);
  stream.grant(half);
  rig.clock.turn();
  assert.is(rig.peer.granted(1), half);
  for (let sent = half; sent < 4 * 1024 * 1024; sent += 16_384) {
    rig.peer.sends(data(1, Buffer.alloc(16_384)));
    stream.grant(16_384);
  }
  assert.is(rig.peer.granted(0) - granted, h2Limits.connectionWindowBytes / 4);
});

test("a grant of more than there is, or for a stream that has closed, gives nothing twice", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  const before = rig.peer.granted(0);
  for (let sent = 0; sent < h2Limits.streamWindowBytes; sent += 16_384)
    rig.peer.sends(data(1, Buffer.alloc(16_384)));
  const { stream } = rig.last;
  stream.grant(10_000_000);
  stream.grant(10_000_000);
  stream.reset(errorCode.CANCEL);
  stream.grant(10_000_000);
  rig.clock.turn();
  assert.is(rig.peer.granted(0) - before, h2Limits.streamWindowBytes);
  assert.is(rig.peer.granted(1), h2Limits.streamWindowBytes);
});

for (const [how, ends] of [
  ["the peer resets it", (rig: SessionRig, id: number) => rig.peer.sends(reset(id, "CANCEL"))],
  ["its owner resets it", (rig: SessionRig) => rig.last.stream.reset(errorCode.INTERNAL_ERROR)],
  ["its body is too long", (rig: SessionRig, id: number) => rig.peer.sends(data(id, Buffer.alloc(200)))],
  [
    "its answer is complete",
    (rig: SessionRig, id: number) => {
      rig.last.stream.sendHeaders(ok, true);
      rig.peer.sends(data(id, Buffer.alloc(50), "end"));
    },
  ],
] as const) {
  test(`bytes that were not granted are given back when ${how}: the session's window never leaks`, () => {
    const rig = serverRig();
    for (let count = 0; count < 180; count++) {
      const id = 2 * count + 1;
      rig.peer.sends(headers(id).post("/", ["content-length", "65586"]));
      for (let sent = 0; sent < 65_536; sent += 16_384) rig.peer.sends(data(id, Buffer.alloc(16_384)));
      ends(rig, id);
      rig.clock.advance(1000);
      assert.not(rig.session.isOver, `after ${count}`);
    }
    assert.is(rig.session.openCount, 0);
    assert.ok(rig.peer.granted(0) > 179 * 65_536 - h2Limits.downstreamWindowBytes);
  });
}

/** A client that sends anything that its windows permit, and counts the bytes that it sent. */
class Uploader {
  readonly rig = serverRig();
  readonly #opening = this.rig.peer.granted(0);
  readonly #live = new Map<number, Opened>();
  readonly #sentOn = new Map<number, number>();
  #next = 1;
  sent = 0;

  get owed(): number {
    return this.sent - (this.rig.peer.granted(0) - this.#opening);
  }

  open(): void {
    this.rig.peer.sends(headers(this.#next).post("/"));
    this.#live.set(this.#next, this.rig.last);
    this.#next += 2;
  }

  /** Performs one action on one open stream. Opens a new stream if there is none. */
  act(name: keyof typeof acts, { pick, size, pad }: Step): void {
    const [id, one] = [...this.#live].at(pick % Math.max(1, this.#live.size)) ?? [0, undefined];
    if (one === undefined) return this.open();
    acts[name](this, { id, stream: one.stream, size, pad });
    if (one.stream.isClosed || name === "ends") this.#live.delete(id);
  }

  upload(id: number, body: Buffer, pad = 0, end?: "end"): void {
    const cost = body.length + (pad === 0 ? 0 : pad + 1);
    if (this.owed + cost > h2Limits.downstreamWindowBytes) return;
    const frame = data(id, body, end);
    this.rig.peer.sends(pad === 0 ? frame : padded(frame, pad));
    this.sent += cost;
    this.#sentOn.set(id, (this.#sentOn.get(id) ?? 0) + cost);
    assert.ok(this.rig.peer.granted(id) <= (this.#sentOn.get(id) ?? 0), `stream ${id} was granted too much`);
  }
}

type Step = { readonly pick: number; readonly size: number; readonly pad: number };
type Target = Omit<Step, "pick"> & { readonly id: number; readonly stream: Opened["stream"] };

const acts = {
  opens: (client: Uploader) => client.open(),
  uploads: (client: Uploader, { id, size, pad }: Target) => client.upload(id, Buffer.alloc(size), pad),
  ends: (client: Uploader, { id, size, pad }: Target) => client.upload(id, Buffer.alloc(size), pad, "end"),
  cancels: (client: Uploader, { id }: Target) => client.rig.peer.sends(reset(id, "CANCEL")),
  overflows: (client: Uploader, { id }: Target) => client.rig.peer.sends(windowUpdate(id, 0x7fff_ffff)),
  "is answered": (_: Uploader, { stream }: Target) => stream.sendHeaders(ok, true),
  "is granted": (_: Uploader, { stream, size }: Target) => stream.grant(3 * size),
  "is reset": (client: Uploader, { id, stream, size, pad }: Target) => {
    stream.reset(errorCode.INTERNAL_ERROR);
    client.upload(id, Buffer.alloc(size), pad);
  },
} as const;

const step = fc.record({
  name: fc.constantFrom(...(Object.keys(acts) as (keyof typeof acts)[]), "uploads", "uploads", "uploads"),
  pick: fc.nat(7),
  size: fc.oneof(fc.nat(100), fc.integer({ min: 1, max: 16_000 })),
  pad: fc.oneof(fc.constant(0), fc.nat(255)),
});

test("over any run the session's window is owed nothing once its streams are gone", () => {
  let longest = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 200, maxLength: 400, size: "max" }), (steps) => {
      const client = new Uploader();
      for (const one of steps) {
        client.rig.clock.advance(100);
        client.act(one.name, one);
        assert.ok(client.owed >= 0, `granted ${-client.owed} too much`);
      }
      assert.not(client.rig.session.isOver);
      for (const { stream } of client.rig.opened) stream.reset(errorCode.CANCEL);
      client.rig.clock.turn();
      longest = Math.max(longest, client.sent);
      assert.ok(client.owed >= 0, `granted ${-client.owed} too much`);
      assert.ok(client.owed < h2Limits.downstreamWindowBytes / 4, `${client.owed} of ${client.sent} owed`);
    }),
    { numRuns: 150 },
  );
  assert.ok(longest > h2Limits.downstreamWindowBytes / 2, `the longest run sent ${longest}`);
});

test.run();
