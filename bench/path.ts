/**
 * node bench/path.ts
 *
 * Measures the data path alone, without TLS and the kernel: microseconds of CPU time for a request and its response
 * between an in-memory client and an in-memory backend, as one line of JSON. This includes the work of client and
 * backend, about a microsecond. The result is the best of eighty short rounds, which hardly changes when the machine is
 * busy.
 */

import { wallClock } from "../src/base/clock.ts";
import { Journal } from "../src/events/journal.ts";
import { u8, u24, u32 } from "../src/h2/core/bytes.ts";
import type { Field } from "../src/h2/core/field.ts";
import { clientPreface, flag, frameHeaderBytes, frameType } from "../src/h2/frame/frame.ts";
import { HpackEncoder } from "../src/h2/hpack/hpack-encoder.ts";
import { DataPath } from "../src/proxy/cluster/data-path.ts";
import { Downstream } from "../src/proxy/downstream/downstream.ts";
import { BufferLimiter } from "../src/proxy/overload/buffer-limiter.ts";
import { Client } from "../src/upstream/context/client.ts";
import type { Wire, WireOwner } from "../src/upstream/net/wire.ts";
import { encode } from "../test/support/hpack.ts";
import { fieldsOf, frame, increment, setting } from "./octets.ts";

const clients = 8;
const streams = 16;
const rounds = 80;
const roundMs = 50;
const body = Buffer.alloc(2048, "x");

/** Callbacks that deliver the bytes that are on their way. `settle` runs them in turns, as the event loop would. */
let arrivals: (() => void)[] = [];
let soon: (() => void)[] = [];
const clock = { ...wallClock, after: () => () => {}, soon: (run: () => void) => void soon.push(run) };

/** Delivers all bytes that are on their way, and all bytes that are sent in response. */
function settle(): void {
  while (soon.length + arrivals.length > 0) {
    const [due, arrived] = [soon, arrivals];
    [soon, arrivals] = [[], []];
    for (const run of [...due, ...arrived]) run();
  }
}

/** Calls `hear` for each frame in the written bytes. The caller has removed the connection preface, if any. */
function read(buffers: readonly Buffer[], hear: (type: number, flags: number, id: number) => void): void {
  const bytes = buffers.length === 1 ? (buffers[0] ?? body) : Buffer.concat(buffers);
  for (let at = 0; at < bytes.length; at += frameHeaderBytes + u24(bytes, at))
    hear(u8(bytes, at + 3), u8(bytes, at + 4), u32(bytes, at + 5));
}

/** A backend that answers every request with two kilobytes. */
function backend(owner: WireOwner): Wire {
  const encoder = new HpackEncoder();
  const head = fieldsOf([
    [":status", "200"],
    ["content-type", "application/json"],
    ["content-length", "2048"],
    ["cache-control", "no-cache, private"],
  ]);
  const [first, next] = [encode(encoder, head), encode(encoder, head)];
  let answered = 0;
  let isNew = true;
  arrivals.push(() => owner.receive(setting(3, 100)));
  return {
    write(buffers, written) {
      const out: Buffer[] = [];
      const all = isNew ? [Buffer.concat([...buffers]).subarray(clientPreface.length)] : buffers;
      isNew = false;
      read(all, (type, _flags, id) => {
        if (type !== frameType.HEADERS) return;
        out.push(frame(frameType.HEADERS, flag.END_HEADERS, id, answered === 0 ? first : next));
        out.push(frame(frameType.DATA, flag.END_STREAM, id, body));
        answered += 1;
      });
      written?.();
      if (out.length > 0) arrivals.push(() => owner.receive(Buffer.concat(out)));
      return true;
    },
    end() {},
    destroy() {},
  };
}

let done = 0;

/** Creates a client that keeps its streams busy. Returns the function that it runs in each turn. */
function client(path: DataPath, number: number): () => void {
  const encoder = new HpackEncoder();
  const headOf = (name: number): Field[] =>
    fieldsOf([
      [":method", "GET"],
      [":scheme", "https"],
      [":authority", "10.0.0.1:6443"],
      [":path", `/api/v1/namespaces/kube-system/pods/coredns-${name}?resourceVersion=12345`],
      ["user-agent", "kubelet/v1.36.1 (linux/amd64) kubernetes/0ab1cde"],
      ["accept", "application/vnd.kubernetes.protobuf,application/json"],
      ["accept-encoding", "gzip"],
      ["authorization", "Bearer bench1.0123456789abcdef0123456789abcdef"],
    ]);
  const first = encode(encoder, headOf(0));
  const blocks = Array.from({ length: 64 }, (_, name) => encode(encoder, headOf(name)));
  let [nextId, open, octets] = [1, 0, 0];
  const wire = {
    write(buffers: readonly Buffer[], written?: () => void) {
      read(buffers, (type, flags) => {
        if (type === frameType.RST_STREAM || type === frameType.GOAWAY) throw new Error("The proxy gave up");
        if (type !== frameType.DATA || (flags & flag.END_STREAM) === 0) return;
        open -= 1;
        done += 1;
        octets += body.length;
      });
      written?.();
      return true;
    },
    end() {},
    destroy() {},
  };
  const known = { port: 1, listener: "bench", alpn: "h2", isTls: true } as const;
  const options = { ...known, address: `10.0.0.${number}`, isTrustedForwarder: false };
  const down = new Downstream(new Client(options), path, () => wire);
  down.receive(Buffer.concat([clientPreface, setting(4, 1 << 30), increment(0, 1 << 24)]));
  return () => {
    const out: Buffer[] = octets > 1 << 20 ? [increment(0, octets)] : [];
    if (out.length > 0) octets = 0;
    for (; open < streams; open++, nextId += 2) {
      const block = nextId === 1 ? first : (blocks[nextId % blocks.length] ?? first);
      out.push(frame(frameType.HEADERS, flag.END_HEADERS | flag.END_STREAM, nextId, block));
    }
    down.receive(Buffer.concat(out));
  };
}

/** Returns microseconds of CPU time for each exchange, measured over `ms` milliseconds. */
function measure(turns: readonly (() => void)[], ms: number): number {
  const [doneBefore, cpuBefore, until] = [done, process.cpuUsage(), performance.now() + ms];
  while (performance.now() < until) {
    for (const turn of turns) turn();
    settle();
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  return (user + system) / (done - doneBefore);
}

const path = new DataPath({
  clock,
  journal: new Journal(clock),
  connect: (_, owner) => backend(owner),
  connections: { streams: 80, warm: 1 },
  isPerClient: false,
  bufferLimiter: new BufferLimiter(clock, 1 << 30),
  ping: { intervalMs: 250, suspectAfterMs: 500, deadAfterMs: 2000, deadAfterWhenAllSilentMs: 10_000 },
});
path.reconcile(["one"]);
settle();
const turns = Array.from({ length: clients }, (_, number) => client(path, number));
measure(turns, 1500);
const figures = Array.from({ length: rounds }, () => measure(turns, roundMs));
const best = Math.round(Math.min(...figures) * 100) / 100;
process.stdout.write(`${JSON.stringify({ bench: "path", unit: "us/exchange", best })}\n`);
