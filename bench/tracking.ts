/**
 * node bench/tracking.ts
 *
 * Measures what it costs to decode and track watches, as lines of JSON: microseconds of CPU time for an event of 1 kB
 * on its way from an upstream connection to the client, compared with the same bytes relayed without decoding. Both
 * ends are in memory, because TLS and the kernel cost the same in either case. `alone`: one event in each DATA frame,
 * from 64 watches in turn. `burst`: frames of 16 KiB that may end inside an event. The forms of events are measured by
 * turns, and the result is the best round of each.
 */
import { wallClock } from "../src/base/clock.ts";
import { Journal } from "../src/events/journal.ts";
import { u8, u24, u32 } from "../src/h2/core/bytes.ts";
import { clientPreface, flag, frameHeaderBytes, frameType } from "../src/h2/frame/frame.ts";
import { HpackEncoder } from "../src/h2/hpack/hpack-encoder.ts";
import { DataPath } from "../src/proxy/cluster/data-path.ts";
import { Downstream } from "../src/proxy/downstream/downstream.ts";
import { BufferLimiter } from "../src/proxy/overload/buffer-limiter.ts";
import { Client } from "../src/upstream/context/client.ts";
import type { Wire, WireOwner } from "../src/upstream/net/wire.ts";
import { encode } from "../test/support/hpack.ts";
import { field, protobufEvent, protobufMetadata } from "../test/support/watch-bytes.ts";
import { fieldsOf, frame, increment, setting } from "./octets.ts";

const watches = 64;
const rounds = 9;
const roundMs = 250;
const eventBytes = 1024;
const burstFrame = 16_384;

type Form = { readonly name: string; readonly contentType: string; readonly event: Buffer };

const metadata = {
  name: "coredns-7d764666f9-x2k4l",
  generateName: "coredns-7d764666f9-",
  namespace: "kube-system",
  uid: "0c4ee1f3-8d0c-4b0e-9a37-5e1f5b1f7a10",
  resourceVersion: "123456789",
  generation: 3,
};

function json(object: object): Buffer {
  const text = (pad: string): string =>
    `${JSON.stringify({ type: "MODIFIED", object: { ...object, pad } })}\n`;
  return Buffer.from(text("x".repeat(eventBytes - text("").length)));
}

/** Events as kube-apiserver writes them: one of a typed object, and one of a custom resource, whose keys are sorted. */
const typed = json({ kind: "Pod", apiVersion: "v1", metadata });
const { name, namespace, resourceVersion, uid } = metadata;
const fields = Object.fromEntries(
  Array.from({ length: 8 }, (_, index) => [`f:field${index}`, { ".": {}, "f:name": {} }]),
);
const custom = json({
  apiVersion: "example.com/v1",
  kind: "Thing",
  metadata: {
    annotations: { note: "an annotation of some length, as tools like to write them" },
    creationTimestamp: "2026-11-20T00:00:00Z",
    managedFields: [{ apiVersion: "example.com/v1", fieldsType: "FieldsV1", fieldsV1: fields, manager: "m" }],
    name,
    namespace,
    resourceVersion,
    uid,
  },
});
const pod = (pad: number): Buffer =>
  protobufEvent(
    "MODIFIED",
    Buffer.concat([field(1, protobufMetadata(metadata)), field(2, Buffer.alloc(pad))]),
  );
const protobuf = pod(eventBytes - pod(200).length + 200);

const forms: readonly Form[] = [
  { name: "opaque", contentType: "application/cbor-seq", event: typed },
  { name: "json", contentType: "application/json", event: typed },
  { name: "json, custom resource", contentType: "application/json", event: custom },
  { name: "protobuf", contentType: "application/vnd.kubernetes.protobuf;stream=watch", event: protobuf },
];

/** Callbacks that `settle` runs in turns, as the event loop would. */
let soon: (() => void)[] = [];
const clock = { ...wallClock, after: () => () => {}, soon: (run: () => void) => void soon.push(run) };

function settle(): void {
  while (soon.length > 0) {
    const due = soon;
    soon = [];
    for (const run of due) run();
  }
}

function read(bytes: Buffer, hear: (type: number, length: number, id: number) => void): void {
  for (let at = 0; at < bytes.length; at += frameHeaderBytes + u24(bytes, at))
    hear(u8(bytes, at + 3), u24(bytes, at), u32(bytes, at + 5));
}

/** One client, its watches on one upstream connection, and the bytes that arrive on that connection in each turn. */
class Rig {
  /** The streams of the watches that the proxy has opened on each upstream connection. */
  readonly #opened = new Map<WireOwner, number[]>();
  /** The upstream connection with the most watches. Events arrive only on this one. */
  readonly #owner: WireOwner;
  /** The streams of the watches on `#owner`. */
  readonly ids: readonly number[];
  readonly #head: Buffer;
  /** For each stream, the bytes that the client has received and for which it has not sent WINDOW_UPDATE yet. */
  readonly #owed = new Map<number, number>();
  #granted = 0;
  /** Bytes of events that have reached the client. */
  delivered = 0;
  #down: Downstream;

  constructor(form: Form) {
    this.#head = encode(
      new HpackEncoder(),
      fieldsOf([
        [":status", "200"],
        ["content-type", form.contentType],
      ]),
    );
    const path = new DataPath({
      clock,
      journal: new Journal(clock),
      connect: (_, owner) => this.#connection(owner),
      connections: { streams: 80, warm: 1 },
      isPerClient: false,
      bufferLimiter: new BufferLimiter(clock, 1 << 30),
      ping: { intervalMs: 250, suspectAfterMs: 500, deadAfterMs: 2000, deadAfterWhenAllSilentMs: 10_000 },
    });
    path.reconcile(["one"]);
    settle();
    const known = { port: 1, listener: "bench", alpn: "h2", isTls: true } as const;
    const options = { ...known, address: "10.0.0.1", isTrustedForwarder: false };
    this.#down = new Downstream(new Client(options), path, () => this.#client());
    this.#down.receive(Buffer.concat([clientPreface, setting(4, 2 ** 31 - 1), increment(0, 1 << 30)]));
    this.#ask();
    settle();
    const [most] = [...this.#opened].toSorted(([, one], [, other]) => other.length - one.length);
    // The proxy opens a few watches before the connection that gets the others.
    if (most === undefined || most[1].length < watches - 4) throw new Error("The watches are spread");
    [this.#owner, this.ids] = most;
  }

  #ask(): void {
    const encoder = new HpackEncoder();
    for (let id = 1; id < 2 * watches; id += 2) {
      const head = encode(
        encoder,
        fieldsOf([
          [":method", "GET"],
          [":scheme", "https"],
          [":authority", "10.0.0.1:6443"],
          [":path", "/api/v1/pods?watch=true&resourceVersion=123"],
          ["authorization", "Bearer bench1.0123456789abcdef0123456789abcdef"],
        ]),
      );
      this.#down.receive(frame(frameType.HEADERS, flag.END_HEADERS | flag.END_STREAM, id, head));
    }
  }

  #connection(owner: WireOwner): Wire {
    const hear = (type: number, _: number, id: number): void => {
      if (type === frameType.RST_STREAM || type === frameType.GOAWAY) throw new Error("The proxy gave up");
      if (type !== frameType.HEADERS) return;
      this.#opened.set(owner, [...(this.#opened.get(owner) ?? []), id]);
      // Answers at once, because the proxy opens more than two watches only after the backend has answered one.
      soon.push(() => owner.receive(frame(frameType.HEADERS, flag.END_HEADERS, id, this.#head)));
    };
    let isNew = true;
    soon.push(() => owner.receive(setting(3, 100)));
    return {
      write: (buffers, written) => {
        const all = Buffer.concat([...buffers]);
        written?.();
        read(isNew ? all.subarray(clientPreface.length) : all, hear);
        isNew = false;
        return true;
      },
      end() {},
      destroy() {},
    };
  }

  #client(): Wire {
    const hear = (type: number, length: number, id: number): void => {
      if (type === frameType.RST_STREAM || type === frameType.GOAWAY) throw new Error("The proxy gave up");
      if (type !== frameType.DATA) return;
      this.delivered += length;
      this.#owed.set(id, (this.#owed.get(id) ?? 0) + length);
    };
    return {
      write: (buffers, written) => {
        // Joins the buffers first, because one may contain several frames, and one frame may be spread over several.
        read(Buffer.concat([...buffers]), hear);
        written?.();
        return true;
      },
      end() {},
      destroy() {},
    };
  }

  #receive(bytes: Buffer): void {
    this.#owner.receive(bytes);
    settle();
  }

  /** Receives the chunks again and again for `ms`. Returns microseconds of CPU time for each event. */
  play(chunks: readonly Buffer[], ms: number): number {
    const copies = chunks.map((chunk) => Buffer.from(chunk));
    const before = this.delivered;
    const cpu = process.cpuUsage();
    for (const until = performance.now() + ms; performance.now() < until; ) {
      for (const [index, chunk] of chunks.entries()) {
        const copy = copies[index] ?? chunk;
        // The proxy overwrites received bytes when it relays them, so each round needs a fresh copy.
        chunk.copy(copy);
        this.#receive(copy);
      }
      this.#grant();
    }
    const { user, system } = process.cpuUsage(cpu);
    return ((user + system) * eventBytes) / (this.delivered - before);
  }

  #grant(): void {
    const due = this.delivered - this.#granted;
    if (due < 1 << 20) return;
    this.#granted = this.delivered;
    this.#down.receive(
      Buffer.concat([increment(0, due), ...[...this.#owed].map(([id, octets]) => increment(id, octets))]),
    );
    this.#owed.clear();
    settle();
  }
}

/** Returns one event for each watch, in chunks that each contain the events of up to 16 watches. */
function alone(form: Form, ids: readonly number[]): Buffer[] {
  const frames = ids.map((id) => frame(frameType.DATA, 0, id, form.event));
  return Array.from({ length: watches / 16 }, (_, index) =>
    Buffer.concat(frames.slice(index * 16, index * 16 + 16)),
  );
}

/** Returns events for three watches, in frames of the maximum size. A frame may end inside an event. */
function burst(form: Form, ids: readonly number[]): Buffer[] {
  const events = Buffer.concat(Array.from({ length: 64 }, () => form.event));
  return [0, 1, 2].map((watch) => {
    const frames: Buffer[] = [];
    for (let at = 0, size = 4096; at < events.length; at += size, size = burstFrame - 1)
      frames.push(frame(frameType.DATA, 0, ids[watch] ?? 1, events.subarray(at, at + size)));
    return Buffer.concat(frames);
  });
}

const rigs = forms.map((form) => {
  if (form.event.length !== eventBytes) throw new Error(`An event of ${form.event.length} bytes`);
  return { form, rig: new Rig(form) };
});

/** Returns the best result of all rounds for each form of event. */
function measure(chunksOf: (form: Form, ids: readonly number[]) => Buffer[]): number[] {
  const play = (): number[] => rigs.map(({ form, rig }) => rig.play(chunksOf(form, rig.ids), roundMs));
  play();
  const figures = Array.from({ length: rounds }, play);
  return forms.map((_, index) =>
    Math.min(...figures.map((round) => round[index] ?? Number.POSITIVE_INFINITY)),
  );
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
for (const [shape, chunksOf] of Object.entries({ alone, burst })) {
  const costs = measure(chunksOf);
  for (const [index, { name: form }] of forms.entries()) {
    const cost = costs[index] ?? 0;
    const line = { bench: "tracking", shape, form, unit: "us/event", best: rounded(cost) };
    process.stdout.write(`${JSON.stringify({ ...line, ratio: rounded(cost / (costs[0] ?? cost)) })}\n`);
  }
}
