/**
 * HTTP/2 frames as values and as lines of text. This file shares no code with src/h2, because tests must not derive
 * their expected bytes from the code under test. Header blocks consist of literals and use no dynamic table.
 */
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";

export type Fields = readonly (readonly [name: string, value: string])[];

export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
};

export const types = [
  "DATA",
  "HEADERS",
  "PRIORITY",
  "RST_STREAM",
  "SETTINGS",
  "PUSH_PROMISE",
  "PING",
  "GOAWAY",
  "WINDOW_UPDATE",
  "CONTINUATION",
];

const codes = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;
export type Code = (typeof codes)[number];

const settingNames = [
  "",
  "HEADER_TABLE_SIZE",
  "ENABLE_PUSH",
  "MAX_CONCURRENT_STREAMS",
  "INITIAL_WINDOW_SIZE",
  "MAX_FRAME_SIZE",
  "MAX_HEADER_LIST_SIZE",
] as const;
export type Setting = Exclude<(typeof settingNames)[number], "">;

export const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const endStream = 0x1;
const ack = 0x1;
const endHeaders = 0x4;
const isPadded = 0x8;
const hasPriority = 0x20;

export function raw(type: number, flags: number, id: number, payload: Buffer | string = ""): Frame {
  return { type, flags, id, payload: Buffer.from(payload as string, "latin1") };
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, 4 * index);
  return bytes;
}

/** Returns a DATA frame; "end" sets END_STREAM. */
export function data(id: number, body: Buffer | string, end?: "end"): Frame {
  return raw(0, end === "end" ? endStream : 0, id, body);
}

export type HeadersOf = {
  of(fields: Fields, end?: "end"): Frame;
  get(path: string, ...more: Fields): Frame;
  head(path: string, ...more: Fields): Frame;
  /** A request head without END_STREAM, so that a body can follow. */
  post(path: string, ...more: Fields): Frame;
  status(status: number, ...more: Fields): Frame;
  /** A response without a body: HEADERS with END_STREAM. */
  statusOnly(status: number, ...more: Fields): Frame;
  trailers(...fields: Fields): Frame;
};

/** Builders of a HEADERS frame on this stream, for example `headers(1).get("/api")`. */
export function headers(id: number): HeadersOf {
  const of = (fields: Fields, end?: "end"): Frame =>
    raw(1, endHeaders | (end === "end" ? endStream : 0), id, block(fields));
  const request = (method: string, path: string, more: Fields): Fields => [
    [":method", method],
    [":scheme", "https"],
    [":path", path],
    [":authority", "api"],
    ...more,
  ];
  return {
    of,
    get: (path, ...more) => of(request("GET", path, more), "end"),
    head: (path, ...more) => of(request("HEAD", path, more), "end"),
    post: (path, ...more) => of(request("POST", path, more)),
    status: (status, ...more) => of([[":status", String(status)], ...more]),
    statusOnly: (status, ...more) => of([[":status", String(status)], ...more], "end"),
    trailers: (...fields) => of(fields, "end"),
  };
}

export function reset(id: number, code: Code): Frame {
  return raw(3, 0, id, u32(codes.indexOf(code)));
}

export function priority(id: number, dependsOn: number): Frame {
  return raw(2, 0, id, Buffer.concat([u32(dependsOn), Buffer.from([15])]));
}

export function settings(values: Partial<Record<Setting, number>> = {}): Frame {
  const entries = Object.entries(values).map(([name, value]) => {
    const entry = Buffer.alloc(6);
    entry.writeUInt16BE(settingNames.indexOf(name as Setting), 0);
    entry.writeUInt32BE(value, 2);
    return entry;
  });
  return raw(4, 0, 0, Buffer.concat(entries));
}

export function settingsAck(): Frame {
  return raw(4, ack, 0);
}

export function ping(number: number): Frame {
  return raw(6, 0, 0, u32(0, number));
}

export function pong(number: number): Frame {
  return raw(6, ack, 0, u32(0, number));
}

export function goAway(lastId: number, code: Code = "NO_ERROR", debug = ""): Frame {
  return raw(7, 0, 0, Buffer.concat([u32(lastId, codes.indexOf(code)), Buffer.from(debug, "latin1")]));
}

export function windowUpdate(id: number, increment: number): Frame {
  return raw(8, 0, id, u32(increment));
}

/** Returns the same DATA or HEADERS frame with `count` bytes of padding. */
export function padded(frame: Frame, count: number): Frame {
  const payload = Buffer.concat([Buffer.from([count]), frame.payload, Buffer.alloc(count)]);
  return { ...frame, flags: frame.flags | isPadded, payload };
}

/** Returns the same HEADERS frame with priority fields. */
export function prioritized(frame: Frame, dependsOn: number): Frame {
  const payload = Buffer.concat([u32(dependsOn), Buffer.from([15]), frame.payload]);
  return { ...frame, flags: frame.flags | hasPriority, payload };
}

/**
 * Splits a HEADERS frame into one HEADERS and several CONTINUATION frames with these payload sizes in bytes. The last
 * frame has the rest.
 */
export function continued(frame: Frame, ...sizes: number[]): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  for (const size of [...sizes, frame.payload.length]) {
    const payload = frame.payload.subarray(at, at + size);
    at += payload.length;
    if (frames.length === 0) frames.push({ ...frame, flags: frame.flags & ~endHeaders, payload });
    else frames.push(raw(9, 0, frame.id, payload));
  }
  return frames.map((one, index) =>
    index === frames.length - 1 ? { ...one, flags: one.flags | endHeaders } : one,
  );
}

export function block(fields: Fields): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** A string literal without Huffman coding (RFC 7541 §5.2). Its length is an integer with a 7-bit prefix (§5.1). */
function text(value: string): Buffer {
  const octets = Buffer.from(value, "latin1");
  if (octets.length < 127) return Buffer.concat([Buffer.from([octets.length]), octets]);
  const prefix = [127];
  let rest = octets.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) prefix.push((rest % 128) | 128);
  return Buffer.concat([Buffer.from([...prefix, rest]), octets]);
}

/** Returns the frames in their wire format. */
export function wire(...frames: readonly Frame[]): Buffer {
  return Buffer.concat(
    frames.flatMap(({ type, flags, id, payload }) => {
      const head = Buffer.alloc(9);
      head.writeUIntBE(payload.length, 0, 3);
      head[3] = type;
      head[4] = flags;
      head.writeUInt32BE(id, 5);
      return [head, payload];
    }),
  );
}

/** Returns the complete frames at the start of `bytes`, and the remaining bytes. */
export function parse(bytes: Buffer): { readonly frames: Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = [];
  let at = 0;
  while (bytes.length - at >= 9) {
    const length = bytes.readUIntBE(at, 3);
    if (bytes.length - at - 9 < length) break;
    const payload = Buffer.from(bytes.subarray(at + 9, at + 9 + length));
    frames.push({
      type: bytes[at + 3] ?? 0,
      flags: bytes[at + 4] ?? 0,
      id: bytes.readUInt32BE(at + 5),
      payload,
    });
    at += 9 + length;
  }
  return { frames, rest: bytes.subarray(at) };
}

/**
 * Merges each HEADERS frame with its CONTINUATION frames into one frame. Throws if a header block is incomplete or
 * interrupted.
 */
export function joined(frames: readonly Frame[]): Frame[] {
  const whole: Frame[] = [];
  let open: Frame | undefined;
  for (const frame of frames) {
    const next = open === undefined ? begun(frame) : appended(open, frame);
    open = isOpen(next) ? next : undefined;
    if (open === undefined) whole.push(next);
  }
  if (open !== undefined) throw new Error("Block not ended");
  return whole;
}

function isOpen(frame: Frame): boolean {
  return frame.type === 1 && (frame.flags & endHeaders) === 0;
}

function begun(frame: Frame): Frame {
  if (frame.type === 9) throw new Error("CONTINUATION without HEADERS");
  return frame;
}

function appended(open: Frame, frame: Frame): Frame {
  if (frame.type !== 9 || frame.id !== open.id) throw new Error("Block interrupted");
  return { ...open, flags: open.flags | frame.flags, payload: Buffer.concat([open.payload, frame.payload]) };
}

type Line = (frame: Frame, decoder: HpackDecoder) => string;

const end = (frame: Frame): string => ((frame.flags & endStream) !== 0 ? " END" : "");

const lines: Readonly<Record<string, Line>> = {
  DATA: (frame) => `DATA ${frame.id} ${shownBody(frame.payload)}${end(frame)}`,
  HEADERS: (frame, decoder) => {
    const fields = decoder.decode(frame.payload, 0, frame.payload.length);
    const list = fields.map((field) => `${field.name}=${field.value}`).join(" ");
    return `HEADERS ${frame.id} ${list}${end(frame)}`;
  },
  RST_STREAM: ({ id, payload }) => `RST_STREAM ${id} ${codes[payload.readUInt32BE(0)]}`,
  SETTINGS: ({ flags, payload }) =>
    (flags & ack) !== 0 ? "SETTINGS ack" : `SETTINGS ${shownSettings(payload)}`.trimEnd(),
  PING: ({ flags, payload }) => `${(flags & ack) !== 0 ? "PONG" : "PING"} ${payload.readUInt32BE(4)}`,
  GOAWAY: ({ payload }) => `GOAWAY ${payload.readUInt32BE(0)} ${codes[payload.readUInt32BE(4)]}`,
  WINDOW_UPDATE: ({ id, payload }) => `WINDOW_UPDATE ${id} +${payload.readUInt32BE(0)}`,
};

/**
 * Returns a frame as one line of text, for example `HEADERS 1 :status=200 END`. `decoder` must be the one that has
 * decoded all earlier header blocks of the session.
 */
export function shown(frame: Frame, decoder: HpackDecoder = new HpackDecoder()): string {
  const name = types[frame.type] ?? `TYPE_${frame.type}`;
  const line = lines[name];
  return line?.(frame, decoder) ?? `${name} ${frame.id} ${frame.payload.length} bytes`;
}

function shownSettings(payload: Buffer): string {
  const entries: string[] = [];
  for (let at = 0; at < payload.length; at += 6)
    entries.push(`${settingNames[payload.readUInt16BE(at)]}=${payload.readUInt32BE(at + 2)}`);
  return entries.join(" ");
}

function shownBody(body: Buffer): string {
  return body.length <= 64 ? JSON.stringify(body.toString("latin1")) : `${body.length} bytes`;
}
