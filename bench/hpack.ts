/**
 * node bench/hpack.ts
 *
 * Measures HPACK alone, in nanoseconds for each header block. The result is the best of five rounds, as one line of
 * JSON.
 */
import { Field } from "../src/h2/core/field.ts";
import { HpackDecoder } from "../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../src/h2/hpack/hpack-encoder.ts";
import { huffmanEncode } from "../test/support/huffman.ts";

const rounds = 5;
const turnsPerRound = 200_000;

/** The fields that a kubelet repeats in each request. */
const repeated = [
  new Field(":method", "GET"),
  new Field(":scheme", "https"),
  new Field(":authority", "10.0.0.1:6443"),
  new Field("user-agent", "kubelet/v1.36.1 (linux/amd64) kubernetes/0ab1cde"),
  new Field("accept", "application/vnd.kubernetes.protobuf,application/json"),
  new Field("accept-encoding", "gzip"),
  new Field("cache-control", "no-cache, private"),
  new Field("x-kubernetes-pf-flowschema-uid", "e6b3a5b4-6f8b-4a3c-8a2e-0a8c1a2b3c4d"),
];
/** The field that differs in each request. */
const paths = Array.from({ length: 64 }, (_, at) => [
  new Field(":path", `/api/v1/namespaces/kube-system/pods/coredns-${at}?resourceVersion=12345`),
]);
const token = [new Field("authorization", `Bearer ${"eyJhbGciOiJSUzI1NiIsImtpZCI6".repeat(32)}`)];
/** More fields than fit into the dynamic table, so that each one is inserted and evicts another. */
const fresh = Array.from({ length: 512 }, (_, at) => [new Field("x-fresh", `/api/v1/namespaces/${at}`)]);

let sink = 0;

/** Returns the nanoseconds that each call of `run` takes. */
function timed(run: (turn: number) => number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const started = process.hrtime.bigint();
    for (let turn = 0; turn < turnsPerRound; turn++) sink += run(turn);
    best = Math.min(best, Number(process.hrtime.bigint() - started) / turnsPerRound);
  }
  return Math.round(best * 10) / 10;
}

/**
 * Measures the decoding of a header block for `list`. The encoder has already written the same list once in the same
 * session.
 */
function decoding(list: readonly Field[]): number {
  const [encoder, decoder] = [new HpackEncoder(), new HpackDecoder()];
  const block = Buffer.alloc(encoder.bound(list));
  decoder.decode(block, 0, encoder.encode(list, block, 0));
  const end = encoder.encode(list, block, 0);
  return timed(() => decoder.decode(block, 0, end).length);
}

/** Measures the encoding of these lists one after the other, all by the same encoder. */
function encoding(lists: readonly (readonly Field[])[]): number {
  const encoder = new HpackEncoder();
  const block = Buffer.alloc(4096);
  return timed((turn) => encoder.encode(lists[turn % lists.length] ?? [], block, 0));
}

/** Measures the Huffman decoding of `:path`, as Go's clients would send it if they did not index it. */
function decodingHuffman(text: string): number {
  const coded = huffmanEncode(Buffer.from(text));
  const block = Buffer.concat([Buffer.from([0x04, 0x80 | coded.length]), coded]);
  const decoder = new HpackDecoder();
  return timed(() => decoder.decode(block, 0, block.length).length);
}

const figures = {
  bench: "hpack",
  unit: "ns/block",
  decodeEightIndexed: decoding(repeated),
  encodeEightIndexed: encoding([repeated]),
  decodePath: decoding(paths[0] ?? []),
  decodeHuffmanPath: decodingHuffman(paths[0]?.[0]?.value ?? ""),
  encodePath: encoding(paths),
  decodeToken: decoding(token),
  encodeToken: encoding([token]),
  encodeAndEvict: encoding(fresh),
};
process.stdout.write(`${JSON.stringify(figures)}\n`);
// Uses the sum of all results, because the optimizer could otherwise omit the code that computes them.
if (sink === 0) process.exitCode = 1;
