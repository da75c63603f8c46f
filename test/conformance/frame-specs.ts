/**
 * Generates random frames for the comparison with other implementations, and computes what a reader of them has to
 * report.
 */
import type { SessionFrames, StreamFrames } from "../../src/h2/frame/frame.ts";
import type { Random } from "../support/random.ts";

/** A frame as the peers' JSON represents it. Which members it has depends on its kind. */
export type Spec = {
  readonly kind: string;
  readonly id: number;
  readonly octets?: string;
  readonly end?: boolean;
  readonly endHeaders?: boolean;
  readonly pad?: number | null;
  readonly priority?: Priority | null;
  readonly code?: number;
  readonly ack?: boolean;
  readonly entries?: readonly (readonly [id: number, value: number])[];
  readonly lastId?: number;
  readonly increment?: number;
  readonly type?: number;
  readonly flags?: number;
  /** Only in frames that we wrote: the fields of the whole header block. */
  readonly lines?: readonly string[];
};

type Priority = { readonly dependsOn: number; readonly weight: number; readonly exclusive: boolean };

/** One call that a sink has received. Two pieces of one DATA frame count as equal to two DATA frames. */
export type Told = { readonly what: string; octets: string; end: boolean };

export function octets(random: Random, longest: number): string {
  const length = random.below(random.chance(0.1) ? longest : 60);
  return Buffer.from(Array.from({ length }, () => random.below(256))).toString("hex");
}

function maybe<T>(random: Random, probability: number, value: () => T): T | null {
  return random.chance(probability) ? value() : null;
}

function randomPriority(random: Random): Priority {
  return { dependsOn: random.below(12), weight: random.below(256), exclusive: random.chance(0.5) };
}

/** Returns HEADERS, and up to three CONTINUATION frames with the rest of the header block, in the required order. */
function randomHeaders(random: Random, id: number): Spec[] {
  const more = random.chance(0.7) ? 0 : random.below(4);
  const first: Spec = {
    kind: "headers",
    id,
    octets: octets(random, 3000),
    end: random.chance(0.5),
    endHeaders: more === 0,
    // The peers cannot write a frame that is marked as padded but has a padding of 0 bytes.
    pad: maybe(random, 0.2, () => 1 + random.below(200)),
    priority: maybe(random, 0.2, () => ({ ...randomPriority(random), dependsOn: 1 + random.below(12) })),
  };
  const rest = Array.from({ length: more }, (_, at) => ({
    kind: "continuation",
    id,
    octets: octets(random, 3000),
    endHeaders: at === more - 1,
  }));
  return [first, ...rest];
}

const makers: Readonly<Record<string, (random: Random, id: number) => Spec[]>> = {
  headers: randomHeaders,
  data: (random, id) => [
    {
      kind: "data",
      id,
      octets: octets(random, 16_000),
      end: random.chance(0.3),
      pad: maybe(random, 0.2, () => 1 + random.below(200)),
    },
  ],
  priority: (random, id) => [{ kind: "priority", id, priority: randomPriority(random) }],
  reset: (random, id) => [{ kind: "reset", id, code: random.below(2 ** 32) }],
  settings: (random) => [{ kind: "settings", id: 0, ack: false, entries: randomEntries(random) }],
  settingsAck: () => [{ kind: "settings", id: 0, ack: true, entries: [] }],
  ping: (random) => [{ kind: "ping", id: 0, ack: random.chance(0.5), octets: octets8(random) }],
  goAway: (random) => [
    {
      kind: "goAway",
      id: 0,
      lastId: random.below(2 ** 31),
      code: random.below(2 ** 32),
      octets: octets(random, 300),
    },
  ],
  window: (random, id) => [
    { kind: "window", id: random.chance(0.3) ? 0 : id, increment: 1 + random.below(2 ** 31 - 1) },
  ],
  unknown: (random, id) => [
    {
      kind: "unknown",
      id,
      type: 0x20 + random.below(200),
      flags: random.below(256),
      octets: octets(random, 5000),
    },
  ],
};

export function octets8(random: Random): string {
  return Buffer.from(Array.from({ length: 8 }, () => random.below(256))).toString("hex");
}

/** Returns a random selection of the settings, each with a value that the peers accept. */
export function randomEntries(random: Random): [number, number][] {
  const all: [number, number][] = [
    [1, random.below(2 ** 32)],
    [2, random.below(2)],
    [3, random.below(2 ** 32)],
    [4, random.below(2 ** 31)],
    [5, 16_384 + random.below(2 ** 24 - 16_384)],
    [6, random.below(2 ** 32)],
  ];
  return all.filter(() => random.chance(0.5));
}

const kinds = Object.keys(makers) as [string, ...string[]];

export function randomFrames(random: Random, count: number): Spec[] {
  const frames: Spec[] = [];
  while (frames.length < count) {
    const kind = random.chance(0.4) ? random.pick(["data", "headers"]) : random.pick(kinds);
    frames.push(...(makers[kind]?.(random, 1 + 2 * random.below(5)) ?? []));
  }
  return frames;
}

/** Returns what a reader of these frames has to report. */
export function expected(frames: readonly Spec[]): Told[] {
  const told: Told[] = [];
  for (const frame of frames) {
    const text = frame.octets ?? "";
    if (frame.kind === "continuation") {
      const open = told.at(-1);
      if (open !== undefined) open.octets += text;
    } else if (frame.kind === "data") tellData(told, frame, text);
    else told.push(toldOf(frame, text));
  }
  return told;
}

function tellData(told: Told[], { id, pad, end }: Spec, text: string): void {
  if (typeof pad === "number") told.push({ what: `padding ${id} ${pad + 1}`, octets: "", end: false });
  joinData(told, id, text, end === true);
}

/** Joins consecutive DATA of one stream, because a reader may pass on one frame in several pieces. */
function joinData(told: Told[], id: number, text: string, end: boolean): void {
  const last = told.at(-1);
  if (last?.what === `data ${id}`) {
    last.octets += text;
    last.end ||= end;
  } else told.push({ what: `data ${id}`, octets: text, end });
}

function toldOf(frame: Spec, text: string): Told {
  const { kind, id } = frame;
  const dependsOnSelf = frame.priority?.dependsOn === id;
  const words: Readonly<Record<string, string>> = {
    headers: `headers ${id} ${dependsOnSelf}`,
    priority: `priority ${id} ${dependsOnSelf}`,
    reset: `reset ${id} ${frame.code}`,
    settings: frame.ack === true ? "settings acknowledged" : "settings",
    ping: frame.ack === true ? "pong" : "ping",
    goAway: `goAway ${frame.lastId} ${frame.code}`,
    window: `window ${id} ${frame.increment}`,
    unknown: `unknown ${text.length / 2}`,
  };
  const isSettings = kind === "settings";
  const isSilent = kind === "goAway" || kind === "unknown";
  return {
    what: words[kind] ?? kind,
    octets: isSettings ? entriesHex(frame.entries ?? []) : isSilent ? "" : text,
    end: kind === "headers" && frame.end === true,
  };
}

function entriesHex(entries: readonly (readonly [number, number])[]): string {
  return entries
    .map(([id, value]) => id.toString(16).padStart(4, "0") + value.toString(16).padStart(8, "0"))
    .join("");
}

/** Returns a sink that adds each frame to `told`. */
export function recorder(told: Told[]): StreamFrames & SessionFrames {
  const tell = (what: string, text = "", end = false): void => {
    told.push({ what, octets: text, end });
  };
  return {
    data(id, bytes, start, end, endStream) {
      joinData(told, id, bytes.toString("hex", start, end), endStream);
    },
    padding: (id, count) => tell(`padding ${id} ${count}`),
    headers: (id, bytes, start, end, endStream, dependsOnSelf) =>
      tell(`headers ${id} ${dependsOnSelf}`, bytes.toString("hex", start, end), endStream),
    priority: (id, dependsOnSelf) => tell(`priority ${id} ${dependsOnSelf}`),
    reset: (id, code) => tell(`reset ${id} ${code}`),
    settings: (bytes, start, end) => tell("settings", bytes.toString("hex", start, end)),
    settingsAcknowledged: () => tell("settings acknowledged"),
    ping: (bytes, start) => tell("ping", bytes.toString("hex", start, start + 8)),
    pong: (bytes, start) => tell("pong", bytes.toString("hex", start, start + 8)),
    goAwayReceived: (lastId, code) => tell(`goAway ${lastId} ${code}`),
    windowUpdate: (id, increment) => tell(`window ${id} ${increment}`),
    unknown: (count) => tell(`unknown ${count}`),
  };
}
