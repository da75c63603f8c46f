/**
 * Node's own HTTP/2 stack (nghttp2) as an HPACK peer: a server session over a pair of in-memory streams, to which
 * frames are written by hand. Of our code, only HPACK is involved.
 */
import * as http2 from "node:http2";
import { type Duplex, duplexPair } from "node:stream";
import type { Field } from "../../src/h2/core/field.ts";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";
import { decode, encode } from "../support/hpack.ts";

const frame = { headers: 1, settings: 4, ping: 6, goAway: 7 } as const;
const flag = { ack: 1, endStream: 1, endHeaders: 4 } as const;
const headerTableSize = 1;
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** A request as the server received it. */
type Seen = { readonly raw: string[]; readonly sensitive: readonly string[] };

export class NodePeer {
  readonly #decoder: HpackDecoder;
  readonly #encoder = new HpackEncoder();
  readonly #server: http2.ServerHttp2Session;
  readonly #wire: Duplex;
  readonly #seen = new Map<number, Seen>();
  readonly #answers = new Map<number, readonly Field[]>();
  readonly #read = new Map<number, Field[]>();
  #unread = Buffer.alloc(0);
  #nextStream = 1;
  #progress: (() => void) | undefined;
  #judged: ((verdict: string) => void) | undefined;

  /** `ourTableBytes`: the HPACK table size that watchkeeper advertises. */
  constructor(ourTableBytes: number) {
    const [inner, outer] = duplexPair();
    this.#decoder = new HpackDecoder(ourTableBytes);
    this.#wire = outer;
    this.#server = http2.performServerHandshake(inner, {
      maxHeaderListPairs: 4000,
      peerMaxConcurrentStreams: 1000,
    });
    this.#server.on("stream", (stream, headers, _flags, raw) => this.#answer(stream, headers, raw));
    this.#server.on("error", () => undefined);
    outer.on("data", (chunk: Buffer) => this.#receive(chunk));
    outer.write(preface);
    this.#send(frame.settings, 0, 0, setting(headerTableSize, ourTableBytes));
  }

  /**
   * Sends all requests at once. Resolves when the server has answered each, to what the server saw and to the answers
   * as we read them.
   */
  async exchange(
    pairs: readonly { readonly request: readonly Field[]; readonly answer: readonly Field[] }[],
  ): Promise<{ seen: Seen; answer: Field[] }[]> {
    const ids = pairs.map(({ request, answer }) => {
      const id = this.#nextStream;
      this.#nextStream += 2;
      this.#answers.set(id, answer);
      this.#send(frame.headers, flag.endStream | flag.endHeaders, id, encode(this.#encoder, request));
      return id;
    });
    while (!ids.every((id) => this.#read.has(id))) await this.#next();
    return ids.map((id) => ({
      seen: this.#seen.get(id) ?? { raw: [], sensitive: [] },
      answer: this.#read.get(id) ?? [],
    }));
  }

  /** The server announces another table size. Resolves when we have read and acknowledged it. */
  async announce(tableBytes: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.settings({ headerTableSize: tableBytes }, () => resolve());
    });
  }

  /**
   * Sends a header block. Resolves to the GOAWAY that the server sends because of it. Resolves to undefined if the
   * session continues, even if the stream is reset.
   */
  async judge(block: Buffer): Promise<string | undefined> {
    this.#send(frame.headers, flag.endStream | flag.endHeaders, this.#nextStream, block);
    this.#nextStream += 2;
    this.#send(frame.ping, 0, 0, Buffer.alloc(8));
    const verdict = new Promise<string>((resolve) => {
      this.#judged = resolve;
    });
    const said = await verdict;
    return said === "lives" ? undefined : said;
  }

  destroy(): void {
    this.#server.destroy();
    this.#wire.destroy();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#progress = resolve;
    });
  }

  #answer(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, raw: string[]): void {
    stream.on("error", () => undefined);
    const id = stream.id ?? 0;
    const marked: unknown = Reflect.get(headers, http2.sensitiveHeaders);
    this.#seen.set(id, { raw, sensitive: Array.isArray(marked) ? marked.map(String) : [] });
    const answer = this.#answers.get(id);
    if (answer === undefined) {
      stream.close();
      return;
    }
    const list = answer.flatMap(({ name, value }) => [name, value]);
    const never = answer.filter((field) => field.isNeverIndexed).map(({ name }) => name);
    Reflect.set(list, http2.sensitiveHeaders, never);
    // Node accepts a raw list since 24.7, but its type declarations do not include it yet.
    stream.respond(list, { endStream: true });
  }

  #receive(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    while (this.#unread.length >= 9 && this.#unread.length >= 9 + this.#unread.readUIntBE(0, 3)) {
      const end = 9 + this.#unread.readUIntBE(0, 3);
      this.#take(this.#unread.subarray(0, end));
      this.#unread = this.#unread.subarray(end);
    }
    this.#progress?.();
  }

  #take(bytes: Buffer): void {
    const [type, id, payload] = [bytes[3], bytes.readUInt32BE(5), bytes.subarray(9)];
    const isAck = ((bytes[4] ?? 0) & flag.ack) !== 0;
    if (type === frame.headers) this.#read.set(id, decode(this.#decoder, payload));
    if (type === frame.settings && !isAck) this.#takeSettings(payload);
    if (type === frame.ping && isAck) this.#judged?.("lives");
    if (type === frame.goAway) this.#judged?.(`GOAWAY ${payload.readUInt32BE(4)}`);
  }

  #takeSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6)
      if (payload.readUInt16BE(at) === headerTableSize)
        this.#encoder.setPeerTableLimit(payload.readUInt32BE(at + 2));
    this.#send(frame.settings, flag.ack, 0, Buffer.alloc(0));
  }

  #send(type: number, flags: number, id: number, payload: Buffer): void {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(id, 5);
    this.#wire.write(Buffer.concat([head, payload]));
  }
}

function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}
