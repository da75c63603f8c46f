/**
 * Compares our frame reader and writer with nghttp2 inside Node. Node's client posts bodies in pieces of every size,
 * with and without padding, to an echo server made only of our reader, writer and HPACK. The client must get back what
 * it has sent.
 */
import * as http2 from "node:http2";
import { type Duplex, duplexPair } from "node:stream";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import type { SessionFrames, StreamFrames } from "../../src/h2/frame/frame.ts";
import { FrameReader } from "../../src/h2/frame/reader.ts";
import { FrameWriter } from "../../src/h2/frame/writer.ts";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";
import { figure } from "../support/figure.ts";
import { type Random, seeded } from "../support/random.ts";
import { within } from "../support/within.ts";

const test = suite("conformance/frames-node");

const sessions = 40;
const postsPerSession = 50;
const hugeWindow = 2 ** 31 - 1;

/** Ways to cut the bytes from Node before our reader gets them. Each returns the next piece's length. */
const cuts: readonly [(random: Random) => number, ...((random: Random) => number)[]] = [
  () => Number.POSITIVE_INFINITY,
  (random) => 1 + random.below(30),
  (random) => 1 + random.below(random.pick([2, 10, 100, 5000, 40_000])),
];

/** Answers each request with the request's own `x-echo` field and body. Returns the number of frames read. */
function echoOver(wire: Duplex, random: Random): { readonly count: number } {
  const cut = random.pick(cuts);
  const read = { count: 0 };
  const writer = new FrameWriter({ becameDirty() {} });
  const frames = echo(writer, read);
  const reader = new FrameReader(frames, frames, true);
  // Opens all flow-control windows wide at the start. If the window were granted byte by byte, the peer would also send
  // byte by byte.
  writer.settings([[4, hugeWindow]]);
  writer.windowUpdate(0, hugeWindow - 65_535);
  wire.on("data", (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; ) {
      const end = Math.min(chunk.length, at + cut(random));
      reader.receive(Buffer.from(chunk.subarray(at, end)));
      at = end;
      for (const bytes of writer.take()) wire.write(bytes);
    }
  });
  for (const bytes of writer.take()) wire.write(bytes);
  return read;
}

function echo(writer: FrameWriter, read: { count: number }): StreamFrames & SessionFrames {
  const [decoder, encoder] = [new HpackDecoder(), new HpackEncoder()];
  const counting = (): void => {
    read.count++;
  };
  return {
    headers(id, bytes, start, end, endStream) {
      counting();
      const list = decoder.decode(bytes, start, end).filter(({ name }) => name === "x-echo");
      writer.headers(id, encoder, [new Field(":status", "200"), ...list], endStream);
    },
    padding: () => undefined,
    data(id, bytes, start, end, endStream) {
      counting();
      writer.data(id, bytes, start, end, endStream);
    },
    settings() {
      counting();
      writer.settingsAcknowledgement();
    },
    ping(bytes, start) {
      counting();
      writer.ping(bytes, start, true);
    },
    settingsAcknowledged: counting,
    pong: counting,
    windowUpdate: counting,
    priority: counting,
    reset: (id, code) => assert.unreachable(`stream ${id} reset with ${code}`),
    goAwayReceived: (_lastId, code) => assert.is(code, 0),
    unknown: () => assert.unreachable("a frame of no known type"),
  };
}

function randomBody(random: Random): Buffer[] {
  return Array.from({ length: random.below(6) }, () => {
    // Bodies are never empty: in Node 24.21, an empty last write never finishes if the response arrives before it.
    const length = 1 + random.below(random.pick([2, 50, 3000, 40_000]));
    return Buffer.alloc(length, random.below(256));
  });
}

async function post(client: http2.ClientHttp2Session, random: Random): Promise<void> {
  const pieces = randomBody(random);
  const mark = `${random.below(2 ** 31)}`.repeat(random.chance(0.05) ? 3000 : 1);
  const stream = client.request({ ":method": "POST", ":path": "/echo", "x-echo": mark });
  const back: Buffer[] = [];
  const answered = new Promise<void>((resolve, reject) => {
    stream.on("response", (headers) => assert.is(headers["x-echo"], mark));
    stream.on("data", (chunk: Buffer) => back.push(chunk));
    stream.on("error", reject).on("close", resolve);
  });
  for (const piece of pieces) stream.write(piece);
  stream.end();
  await answered;
  assert.is(Buffer.compare(Buffer.concat(back), Buffer.concat(pieces)), 0);
}

async function runSession(seed: number): Promise<number> {
  const random = seeded(seed);
  const [inner, outer] = duplexPair();
  const read = echoOver(outer, seeded(seed + sessions));
  const client = http2.connect("http://10.0.0.1", {
    createConnection: () => inner,
    paddingStrategy: random.pick([
      http2.constants.PADDING_STRATEGY_NONE,
      http2.constants.PADDING_STRATEGY_MAX,
    ]),
    settings: { initialWindowSize: hugeWindow },
  });
  const failed = new Promise<never>((_, reject) => client.on("error", reject));
  client.on("connect", () => client.setLocalWindowSize(hugeWindow));
  const pinged = new Promise<void>((resolve) => client.ping(() => resolve()));
  const posts = Array.from({ length: postsPerSession }, () => post(client, random));
  await Promise.race([Promise.all([...posts, pinged]), failed]);
  client.destroy();
  outer.destroy();
  return read.count;
}

test("what nghttp2 posts comes back through watchkeeper's reader and writer", async () => {
  let count = 0;
  for (let seed = 1; seed <= sessions; seed++)
    count += await within(20_000, `seed ${seed}`, runSession(seed));
  assert.ok(count > 10_000, `only ${count} frames`);
  figure(
    `frames, nghttp2 (node ${process.versions.node}) and us: ${count} frames and pieces of frames read, every body and field came back`,
  );
});

test.run();
