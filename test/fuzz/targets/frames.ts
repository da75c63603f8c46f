/**
 * HTTP/2 frames: a whole session in either role, fed in pieces. For any input it must continue, or end itself with a
 * protocol error.
 */

import type { RequestHead } from "../../../src/h2/core/fields.ts";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import type { StreamListener } from "../../../src/h2/core/stream-writer.ts";
import { FrameReader } from "../../../src/h2/frame/reader.ts";
import { Session, type SessionOwner } from "../../../src/h2/session/session.ts";
import type { Stream } from "../../../src/h2/session/stream.ts";
import { manualClock } from "../../support/clock.ts";
import {
  continued,
  data,
  goAway,
  headers,
  padded,
  parse,
  ping,
  preface,
  prioritized,
  priority,
  raw,
  reset,
  settings,
  settingsAck,
  windowUpdate,
  wire,
} from "../../support/h2-frames.ts";
import { fieldsOf } from "../../support/h2-session.ts";
import { SinkRecord } from "../../support/h2-sink.ts";
import { piecesOf, same, type Target } from "../target.ts";

const answer = fieldsOf([
  [":status", "200"],
  ["content-type", "application/json"],
]);
const trailers = fieldsOf([["x-sum", "1"]]);
const request = fieldsOf([
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/api/v1/pods"],
  [":authority", "api"],
]);

/** Returns the frames that a reader reports, and the error with which it ends, if any. */
function told(pieces: readonly Buffer[]): readonly string[] {
  const sink = new SinkRecord();
  const reader = new FrameReader(sink, sink, false);
  try {
    for (const piece of pieces) reader.receive(piece);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return [...sink.told, `${error.code} ${error.message}`];
  }
  return sink.told;
}

/** Does what the owner of the session may do between two frames. The input selects `number`. */
function meddle(session: Session, stream: Stream | undefined, number: number): void {
  if (number === 1) session.sendPing();
  if (number === 2) session.drained();
  if (number === 3) stream?.growReceiveWindow(1 << 20);
  if (number === 4) stream?.shrinkReceiveWindow(65_536);
  if (number === 5) stream?.sendData(Buffer.from("more"), 0, 4, false);
  if (number === 6) stream?.sendHeaders(trailers, true);
  if (number === 7) stream?.reset(errorCode.NO_ERROR);
  if (number === 8) session.announceEnd();
  if (number === 9) session.goAway();
  if (number === 10) session.check();
}

/** Returns a stream listener that grants flow-control credit, except on every fourth stream. */
function sideOf(stream: () => Stream | undefined): StreamListener {
  return {
    headers() {},
    data(_bytes, start, end) {
      const own = stream();
      if (own !== undefined && own.id % 8 !== 7) own.grant(end - start);
    },
    reset() {},
    sent() {},
  };
}

/** A session owner that answers, resets or ignores streams, by their numbers. */
class Owner implements SessionOwner {
  ends = 0;
  last: Stream | undefined;
  readonly #shape: number;
  #written = 0;

  constructor(shape: number) {
    this.#shape = shape;
  }

  opened(stream: Stream, _request: RequestHead, end: boolean): StreamListener {
    this.last = stream;
    if (stream.id % 8 === 1) stream.sendHeaders(answer, true);
    if (stream.id % 8 === 3) {
      stream.sendHeaders(answer, false);
      stream.sendData(Buffer.alloc(70_000), 0, 70_000, end);
      stream.sendHeaders(trailers, true);
    }
    if (stream.id % 8 === 5) stream.reset(errorCode.CANCEL);
    return sideOf(() => stream);
  }

  write(buffers: Buffer[], written: (() => void) | undefined): boolean {
    const frames = buffers.filter((one) => !one.toString("latin1", 0, 3).startsWith("PRI"));
    const { rest } = parse(Buffer.concat(frames));
    if (rest.length > 0) throw new Error(`${rest.length} bytes of a frame that is not whole`);
    written?.();
    this.#written += 1;
    return this.#written % 4 !== this.#shape % 4;
  }

  changed(): void {}

  fault(error: unknown): void {
    throw error;
  }

  ponged(): void {}

  ended(): void {
    this.ends += 1;
  }
}

function play(role: "server" | "client", shape: number, pieces: readonly Buffer[]): void {
  const clock = manualClock();
  const owner = new Owner(shape);
  const session = new Session({ role, clock, turn: new FlushScheduler(clock), owner });
  if (role === "client")
    for (let count = 0; count < 4; count += 1) {
      const own: { stream?: Stream } = {};
      own.stream = session.open(
        request,
        count !== 3,
        sideOf(() => own.stream),
        count === 2,
      );
      owner.last = own.stream;
    }
  for (const [at, piece] of pieces.entries()) {
    session.receive(piece);
    clock.advance((shape & 0x40) !== 0 && at % 8 === 7 ? 6000 : 1);
    if (!session.isOver) meddle(session, owner.last, (shape * 7 + at) % 37);
  }
  session.check();
  const open = session.openCount;
  session.lose();
  clock.turn();
  if (owner.ends !== 1) throw new Error(`ended ${owner.ends} times, with ${open} streams open`);
  if (session.openCount !== 0) throw new Error(`${session.openCount} streams outlive their session`);
  if (session.queuedBytes !== 0) throw new Error(`${session.queuedBytes} bytes outlive their session`);
}

const some = [
  wire(
    settings({ INITIAL_WINDOW_SIZE: 100 }),
    headers(1).get("/api"),
    windowUpdate(1, 100),
    reset(3, "CANCEL"),
  ),
  wire(settings(), headers(3).get("/api"), windowUpdate(3, 70_000), windowUpdate(0, 70_000), ping(1)),
  wire(settings(), headers(7).post("/api"), data(7, "hello"), padded(data(7, "x"), 9), data(7, "", "end")),
  wire(settings(), ...continued(headers(5).get("/api"), 5, 5), priority(5, 3), goAway(5)),
  wire(
    settings({ MAX_FRAME_SIZE: 16_384, ENABLE_PUSH: 0 }),
    settingsAck(),
    prioritized(headers(9).get("/a"), 3),
  ),
  wire(
    settings(),
    headers(1).status(200),
    data(1, "body", "end"),
    headers(3).status(103),
    headers(3).statusOnly(204),
  ),
  wire(
    settings(),
    headers(1).post("/a", ["content-length", "3"]),
    data(1, "abc"),
    headers(1).trailers(["x-a", "b"]),
  ),
  wire(settings(), raw(0xfa, 1, 3, "unknown"), raw(5, 4, 1, "\0\0\0\x02")),
];

export const frames: Target = {
  sources: [
    "h2/frame/reader",
    "h2/session/session",
    "h2/session/streams",
    "h2/session/stream",
    "h2/session/settings",
    "h2/session/message",
  ],
  seeds: some.flatMap((bytes, at) => [
    Buffer.concat([Buffer.from([at]), bytes]),
    Buffer.concat([Buffer.from([0x80 + at]), bytes]),
  ]),
  words: [
    wire(settings()),
    wire(headers(1).get("/")),
    wire(headers(1).status(200)),
    wire(reset(1, "CANCEL")),
    wire(windowUpdate(0, 1)),
    wire(data(1, "x", "end")),
    wire(goAway(0)),
    Buffer.from([0x82, 0x87, 0x84]),
    Buffer.from([0x88]),
    Buffer.from([0, 0, 0, 4, 1, 0, 0, 0, 0]),
  ],
  run(input) {
    const shape = input[0] ?? 0;
    const bytes = input.subarray(1);
    same("whole and in pieces", told([bytes]), told(piecesOf(bytes, shape)));
    if (shape >= 0x80) return play("client", shape, piecesOf(bytes, shape));
    const withPreface = Buffer.concat([Buffer.from(preface), bytes]);
    play("server", shape, shape % 2 === 0 ? [withPreface] : piecesOf(withPreface, shape));
  },
};
