/**
 * Compares our frame reader and writer with two other implementations. We must read what they write in the same way
 * however the bytes are cut: not at all, after each byte, or at random. They must read what we write as it was meant.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ProtocolError } from "../../src/h2/core/protocol-error.ts";
import { frameBytes, frameHeaderBytes, frameType } from "../../src/h2/frame/frame.ts";
import { FrameReader } from "../../src/h2/frame/reader.ts";
import { FrameWriter } from "../../src/h2/frame/writer.ts";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";
import { figure } from "../support/figure.ts";
import { decode, fields, lines } from "../support/hpack.ts";
import { type Random, seeded } from "../support/random.ts";
import {
  expected,
  octets,
  octets8,
  randomEntries,
  randomFrames,
  recorder,
  type Spec,
  type Told,
} from "./frame-specs.ts";
import { peersHere } from "./peers.ts";

const test = suite("conformance/frames");

const sessions = 120;
const framesPerSession = 100;
const brokenSessions = 400;

/** Ways to cut a stream of bytes. Each returns the next piece's length. */
const cuts: Readonly<Record<string, (random: Random) => number>> = {
  whole: () => Number.POSITIVE_INFINITY,
  "byte by byte": () => 1,
  "into small pieces": (random) => 1 + random.below(30),
  "into records of TLS": (random) => 1 + random.below(16_384),
  anyhow: (random) => 1 + random.below(random.pick([2, 10, 100, 5000, 40_000])),
};

/** Returns all that the reader reports for these bytes. If it refuses them, the refusal is the last entry. */
function readCut(bytes: Buffer, random: Random, lengthOf: (random: Random) => number): Told[] {
  const told: Told[] = [];
  const frames = recorder(told);
  const reader = new FrameReader(frames, frames, false);
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + lengthOf(random));
    try {
      // Passes a copy, because the recorder overwrites the bytes that it is given.
      reader.receive(Buffer.from(bytes.subarray(at, end)));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return [...told, { what: `refused: ${error.message}`, octets: "", end: true }];
    }
    at = end;
  }
  return told;
}

/** Returns the bytes with some of them changed, mostly in frame headers, and possibly with the end cut off. */
function broken(bytes: Buffer, random: Random): Buffer {
  const starts: [number, ...number[]] = [0];
  for (let at = 0; at < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) starts.push(at);
  const copy = Buffer.from(bytes);
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.chance(0.8) ? random.pick(starts) + random.below(11) : random.below(bytes.length);
    copy[at] = random.chance(0.5) ? random.below(12) : random.below(256);
  }
  return copy.subarray(0, bytes.length - random.below(500));
}

const texts = [
  "accept: application/json",
  "x-note: a",
  "user-agent: kubelet/v1.36.1",
  ":status: 200",
  "cookie: a=b",
];

/** Writes random frames in several turns. Returns the bytes, and the frames that a peer has to read from them. */
function written(random: Random): { bytes: Buffer; frames: Spec[] } {
  const writer = new FrameWriter({ becameDirty() {} });
  const encoder = new HpackEncoder();
  const out: Buffer[] = [];
  const frames: Spec[] = [];
  for (let turn = 0; turn < 10; turn++) {
    const [urgent, others]: [Spec[], Spec[]] = [[], []];
    for (let count = 0; count < framesPerSession / 10; count++) {
      const frame = writeOne(random, writer, encoder);
      const isUrgent = frame.kind === "ping" || (frame.kind === "settings" && frame.ack === false);
      (isUrgent ? urgent : others).push(frame);
    }
    const buffers = writer.take();
    frames.push(...urgent, ...joined(others, dataBeforeEach(buffers)));
    out.push(...buffers);
  }
  return { bytes: Buffer.concat(out), frames };
}

/** Returns, for each buffer of a turn, the number of DATA bytes before it. */
function dataBeforeEach(buffers: readonly Buffer[]): ReadonlySet<number> {
  const positions = new Set<number>();
  let position = 0;
  for (const buffer of buffers) {
    positions.add(position);
    for (let at = 0; at < buffer.length; at += frameHeaderBytes + buffer.readUIntBE(at, 3))
      if (buffer[at + 3] === frameType.DATA) position += buffer.readUIntBE(at, 3);
  }
  return positions;
}

/**
 * Returns the frames as the writer sends those of one turn. The writer appends DATA to the frame written just before it
 * if that is DATA of the same stream without END_STREAM, and if both fit into one frame and one buffer.
 */
function joined(frames: readonly Spec[], starts: ReadonlySet<number>): Spec[] {
  const all: Spec[] = [];
  let position = 0;
  for (const frame of frames) {
    const last = all.at(-1);
    const text = `${last?.octets ?? ""}${frame.octets ?? ""}`;
    const isNeighbour = frame.kind === "data" && last?.kind === "data" && last.id === frame.id && !last.end;
    const isInBuffer = frame.octets === "" || !starts.has(position);
    if (isNeighbour && isInBuffer && text.length / 2 <= frameBytes) {
      all.pop();
      all.push({ ...frame, octets: text });
    } else all.push(frame);
    if (frame.kind === "data") position += (frame.octets ?? "").length / 2;
  }
  return all;
}

function writeOne(random: Random, writer: FrameWriter, encoder: HpackEncoder): Spec {
  const id = 1 + 2 * random.below(5);
  const code = random.below(14);
  const text = Buffer.from(octets8(random), "hex");
  const actions: readonly (() => Spec)[] = [
    () => writeData(random, writer, id),
    () => writeData(random, writer, id),
    () => writeHeaders(random, writer, encoder, id),
    () => writeHeaders(random, writer, encoder, id),
    () => {
      writer.reset(id, code);
      return { kind: "reset", id, code };
    },
    () => {
      const increment = 1 + random.below(2 ** 31 - 1);
      writer.windowUpdate(id, increment);
      return { kind: "window", id, increment };
    },
    () => {
      const entries = randomEntries(random);
      writer.settings(entries);
      return { kind: "settings", id: 0, ack: false, entries };
    },
    () => {
      writer.settingsAcknowledgement();
      return { kind: "settings", id: 0, ack: true, entries: [] };
    },
    () => {
      const ack = random.chance(0.5);
      writer.ping(text, 0, ack);
      return { kind: "ping", id: 0, ack, octets: text.toString("hex") };
    },
    () => {
      const lastId = random.below(2 ** 31);
      writer.goAway(lastId, code, "why");
      return { kind: "goAway", id: 0, lastId, code, octets: Buffer.from("why").toString("hex") };
    },
  ];
  return (actions[random.below(actions.length)] ?? (() => writeData(random, writer, id)))();
}

type Chunk = { bytes: Buffer; at: number };

/**
 * Chunks such as a socket's read fills: DATA of the same size, one after the other, with nine bytes in front of each
 * for the frame header.
 */
const chunks: readonly [Chunk, Chunk] = [
  { bytes: Buffer.alloc(0), at: 0 },
  { bytes: Buffer.alloc(0), at: 0 },
];
const sizeInChunk = 3000;

/** Writes random DATA: either from a buffer of its own, which has room for a frame header in front, or from a chunk. */
function writeData(random: Random, writer: FrameWriter, id: number): Spec {
  const end = random.chance(0.3);
  if (random.chance(0.5)) return writeFromChunk(writer, id, end, random.pick(chunks));
  const text = octets(random, 16_000);
  const bytes = Buffer.concat([Buffer.alloc(9, 0xee), Buffer.from(text, "hex"), Buffer.alloc(5, 0xee)]);
  writer.data(id, bytes, 9, 9 + text.length / 2, end);
  return { kind: "data", id, octets: text, end };
}

/**
 * Writes DATA from a chunk: right behind the chunk's previous DATA. The two chunks have their DATA at the same
 * positions, so that the writer must not take data of one chunk for neighbours of data in the other.
 */
function writeFromChunk(writer: FrameWriter, id: number, end: boolean, chunk: Chunk): Spec {
  if (chunk.at + 9 + sizeInChunk > chunk.bytes.length) {
    chunk.bytes = Buffer.alloc(40_000, chunk === chunks[0] ? 0xaa : 0xbb);
    chunk.at = 0;
  }
  const start = chunk.at + 9;
  chunk.at = start + sizeInChunk;
  writer.data(id, chunk.bytes, start, chunk.at, end);
  return { kind: "data", id, octets: chunk.bytes.toString("hex", start, chunk.at), end };
}

function writeHeaders(random: Random, writer: FrameWriter, encoder: HpackEncoder, id: number): Spec {
  const end = random.chance(0.3);
  const list = fields(
    ...texts.filter(() => random.chance(0.6)),
    `:path: /${"x".repeat(random.chance(0.1) ? 50_000 : 9)}`,
  );
  writer.headers(id, encoder, list, end);
  return { kind: "headers", id, lines: lines(list), end };
}

/**
 * Rewrites the frames that the peer has read into the form that `writeOne` returns: joins and decodes header blocks,
 * and drops the members that a frame's kind does not have.
 */
function understood(frames: readonly Spec[]): Spec[] {
  const decoder = new HpackDecoder();
  const said: Spec[] = [];
  let block = "";
  for (const frame of frames) {
    const { kind, id } = frame;
    if (kind !== "headers" && kind !== "continuation") {
      said.push(withOwnMembers(frame));
      continue;
    }
    block += frame.octets ?? "";
    if (kind === "headers") said.push({ kind, id, lines: [], end: frame.end === true });
    if (frame.endHeaders !== true) continue;
    const list = lines(decode(decoder, Buffer.from(block, "hex")));
    said.push({ ...(said.pop() ?? { kind, id }), lines: list });
    block = "";
  }
  return said;
}

const members: Readonly<Record<string, readonly (keyof Spec)[]>> = {
  data: ["octets", "end"],
  reset: ["code"],
  settings: ["ack", "entries"],
  ping: ["ack", "octets"],
  goAway: ["lastId", "code", "octets"],
  window: ["increment"],
};

function withOwnMembers(frame: Spec): Spec {
  const own = members[frame.kind] ?? [];
  return { kind: frame.kind, id: frame.id, ...Object.fromEntries(own.map((name) => [name, frame[name]])) };
}

const peers = peersHere();
if (peers.length === 0) test.skip("other implementations agree", () => undefined);
for (const peer of peers) {
  test(`watchkeeper reads what ${peer.name} writes, however it is cut`, () => {
    const random = seeded(9113);
    const plans = Array.from({ length: sessions }, () => randomFrames(random, framesPerSession));
    const answers = peer.ask<{ octets: string }>(plans.map((frames) => ({ do: "write", frames })));
    for (const [at, frames] of plans.entries()) {
      const bytes = Buffer.from(answers[at]?.octets ?? "", "hex");
      const told = expected(frames);
      for (const [how, lengthOf] of Object.entries(cuts))
        assert.equal(readCut(bytes, random, lengthOf), told, `session ${at}, ${how}`);
    }
    const count = plans.reduce((sum, frames) => sum + frames.length, 0);
    figure(
      `frames, ${peer.name} to us: ${count} frames, cut in ${Object.keys(cuts).length} ways, 0 differences`,
    );
  });

  test(`${peer.name} reads what watchkeeper writes`, () => {
    const random = seeded(9114);
    const plans = Array.from({ length: sessions }, () => written(random));
    const answers = peer.ask<{ frames: Spec[] }>(
      plans.map(({ bytes }) => ({ do: "read", octets: bytes.toString("hex") })),
    );
    for (const [at, { frames }] of plans.entries())
      assert.equal(understood(answers[at]?.frames ?? []), frames, `session ${at}`);
    figure(`frames, we to ${peer.name}: ${sessions * framesPerSession} frames, 0 differences`);
  });
}

for (const peer of peers.slice(0, 1)) {
  test("a stream with random damage is taken or refused alike, however it is cut", () => {
    const random = seeded(9115);
    const plans = Array.from({ length: brokenSessions }, () => randomFrames(random, 20));
    const answers = peer.ask<{ octets: string }>(plans.map((frames) => ({ do: "write", frames })));
    const ends = new Map<string, number>();
    for (const [at, { octets: text }] of answers.entries()) {
      const bytes = broken(Buffer.from(text, "hex"), random);
      const whole = readCut(bytes, random, () => bytes.length);
      const last = whole.at(-1)?.what ?? "";
      const end = last.startsWith("refused") ? last : "taken";
      ends.set(end, (ends.get(end) ?? 0) + 1);
      for (const [how, lengthOf] of Object.entries(cuts))
        assert.equal(readCut(bytes, random, lengthOf), whole, `session ${at}, ${how}`);
    }
    const said = [...ends].map(([end, count]) => `${count} ${end.replace("refused: ", "")}`).join(", ");
    figure(`frames, ${brokenSessions} broken streams end alike however they are cut: ${said}`);
  });
}

test.run();
