/**
 * Compares our judgement of malformed header blocks with that of three other decoders. Where all accept a block, they
 * must decode the same fields. Disagreements are counted and printed by class, and each class must be in the list
 * below, with its reason.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ProtocolError } from "../../src/h2/core/protocol-error.ts";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { figure } from "../support/figure.ts";
import { decode } from "../support/hpack.ts";
import { huffmanBits, packBits } from "../support/huffman.ts";
import { type Random, seeded } from "../support/random.ts";
import { within } from "../support/within.ts";
import { NodePeer } from "./node-peer.ts";
import { peersHere } from "./peers.ts";

const test = suite("conformance/hpack-broken");

const cases = 6000;
const casesForNode = 2000;
const blocksPerCase = 4;

type Verdict = { readonly lists: string[][]; readonly error: string | undefined };

/** Known disagreements: each is intended, or a mistake of the other implementation. */
const known: readonly (readonly [RegExp, string])[] = [
  [/we refuse: Integer too long/, "ours: 28 bits are enough, and needless bytes are never honest"],
  [/we refuse: More than 2 table size updates/, "RFC 7541 §4.2 needs at most two"],
  [/^Go .*we refuse: Table size update after a field/, "theirs: not looked at while the table is empty"],
  [
    /^Go .*we take: .*size update MUST occur at the beginning/,
    "theirs: the second update of §4.2 counts as late",
  ],
];

/** Encodes an integer (RFC 7541 §5.1), sometimes with unnecessary bytes. */
function randomInteger(random: Random, pattern: number, mask: number, value: number): number[] {
  const padding = random.chance(0.02) ? 1 + random.below(6) : 0;
  if (value < mask && padding === 0) return [pattern | value];
  const octets = [pattern | mask];
  let rest = value < mask ? 0 : value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) octets.push((rest % 128) | 0x80);
  for (let left = padding; left > 0; left--) {
    octets.push(rest | 0x80);
    rest = 0;
  }
  return [...octets, rest];
}

function randomString(random: Random): number[] {
  const text = Buffer.from(Array.from({ length: random.below(12) }, () => 0x61 + random.below(26)));
  if (random.chance(0.5)) return [...randomInteger(random, 0, 0x7f, text.length), ...text];
  const tail = random.chance(0.9)
    ? ""
    : random.pick(["0", "11111111", "0".repeat(9), "1".repeat(30), "1".repeat(38)]);
  const coded = packBits(huffmanBits(text) + tail, random.chance(0.98) ? "1" : "0");
  const length = coded.length + (random.chance(0.98) ? 0 : random.below(4));
  return [...randomInteger(random, 0x80, 0x7f, length), ...coded];
}

function randomIndex(random: Random): number {
  return random.chance(0.97)
    ? 1 + random.below(63)
    : random.pick([0, 61, 62, 80, 200, 2 ** 20, 2 ** 31, 2 ** 33]);
}

function randomItem(random: Random): number[] {
  const kind = random.below(100);
  if (kind < 45) return randomInteger(random, 0x80, 0x7f, randomIndex(random));
  if (kind < 46) return randomInteger(random, 0x20, 0x1f, random.pick([0, 30, 100, 4096, 4097, 2 ** 30]));
  const [pattern, mask] = random.pick([
    [0x40, 0x3f],
    [0x40, 0x3f],
    [0x00, 0x0f],
    [0x10, 0x0f],
  ] as const);
  const index = random.chance(0.5) ? 0 : randomIndex(random);
  const name = index === 0 ? randomString(random) : [];
  return [...randomInteger(random, pattern, mask, index), ...name, ...randomString(random)];
}

function randomBlock(random: Random): Buffer {
  const updates = Array.from({ length: random.chance(0.1) ? random.below(4) : 0 }, () =>
    randomInteger(random, 0x20, 0x1f, random.below(4097)),
  );
  const items = Array.from({ length: random.below(8) }, () => randomItem(random));
  const block = Buffer.from([...updates, ...items].flat());
  if (random.chance(0.05) && block.length > 0) block[random.below(block.length)] = random.below(256);
  return random.chance(0.03) ? block.subarray(0, random.below(block.length + 1)) : block;
}

function casesOf(seed: number, count: number): Buffer[][] {
  const random = seeded(seed);
  return Array.from({ length: count }, () =>
    Array.from({ length: blocksPerCase }, () => randomBlock(random)),
  );
}

/** Returns watchkeeper's verdict on a session: the header lists up to the first refusal. */
function ours(blocks: readonly Buffer[]): Verdict {
  const decoder = new HpackDecoder();
  const lists: string[][] = [];
  for (const block of blocks) {
    try {
      lists.push(decode(decoder, block).map(({ name, value }) => `${name}: ${value}`));
    } catch (error) {
      if (error instanceof ProtocolError) return { lists, error: error.message };
      throw error;
    }
  }
  return { lists, error: undefined };
}

/** Returns how the two verdicts differ, or undefined if they agree. */
function disagreement(us: Verdict, them: Verdict, name: string): string | undefined {
  if (us.lists.length < them.lists.length) return `${name} takes what we refuse: ${generic(us.error)}`;
  if (us.lists.length > them.lists.length) return `${name} refuses what we take: ${generic(them.error)}`;
  return undefined;
}

/** Returns the error text without the numbers and bytes of the single case, so that it names the class. */
function generic(error = "nothing"): string {
  return error.replaceAll(/\d{2,}|b'.*'/g, "n").slice(0, 110);
}

function report(classes: ReadonlyMap<string, number>): void {
  const unknown: string[] = [];
  for (const [what, count] of [...classes].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const reason = known.find(([form]) => form.test(what))?.[1];
    if (reason === undefined) unknown.push(what);
    figure(`${what} (${count}): ${reason ?? "UNKNOWN"}`);
  }
  assert.equal(unknown, []);
}

for (const peer of peersHere()) {
  test(`${peer.name} and watchkeeper refuse the same blocks, but for what is known`, () => {
    const sessions = casesOf(3, cases);
    const requests = sessions.map((blocks) => ({
      do: "decode",
      blocks: blocks.map((block) => ({ limits: [], hex: block.toString("hex") })),
    }));
    const answers = peer.ask<{ lists?: { name: string; value: string }[][]; error?: string }>(requests);
    const classes = new Map<string, number>();
    let agreed = 0;
    for (const [at, blocks] of sessions.entries()) {
      const { lists = [], error } = answers[at] ?? {};
      const them = { lists: lists.map((list) => list.map(({ name, value }) => `${name}: ${value}`)), error };
      const us = ours(blocks);
      const common = Math.min(us.lists.length, them.lists.length);
      assert.equal(us.lists.slice(0, common), them.lists.slice(0, common), `case ${at}`);
      const what = disagreement(us, them, peer.name);
      if (what === undefined) agreed++;
      else classes.set(what, (classes.get(what) ?? 0) + 1);
    }
    const refused = answers.filter(({ error }) => error !== undefined).length;
    figure(`broken hpack, ${peer.name} refuses ${refused} of ${cases} sessions, and we agree on ${agreed}`);
    report(classes);
  });
}

test("nghttp2 and watchkeeper refuse the same blocks, but for what is known", async () => {
  const classes = new Map<string, number>();
  let agreed = 0;
  for (const blocks of casesOf(4, casesForNode)) {
    const us = ours(blocks);
    const them = await within(20_000, "nghttp2's verdict", judgedByNode(blocks));
    const what = them === undefined ? undefined : disagreement(us, them, "nghttp2");
    if (what === undefined) agreed++;
    else classes.set(what, (classes.get(what) ?? 0) + 1);
  }
  figure(`broken hpack, nghttp2 and we agree on ${agreed} of ${casesForNode} sessions`);
  report(classes);
});

/**
 * Returns nghttp2's verdict, without header lists. Returns undefined if the session ended for a reason other than
 * HPACK.
 */
async function judgedByNode(blocks: readonly Buffer[]): Promise<Verdict | undefined> {
  const peer = new NodePeer(4096);
  const lists: string[][] = [];
  let error: string | undefined;
  for (const block of blocks) {
    error = await peer.judge(block);
    if (error !== undefined) break;
    lists.push([]);
  }
  peer.destroy();
  return error === undefined || error === "GOAWAY 9" ? { lists, error } : undefined;
}

test.run();
