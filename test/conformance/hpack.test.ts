/**
 * Compares our HPACK with two other implementations, over whole sessions in which the tables change their content and
 * their size. We must read what they write as they meant it, and they must read what we write.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";
import { figure } from "../support/figure.ts";
import { decode, encode } from "../support/hpack.ts";
import { type Random, seeded } from "../support/random.ts";
import { peersHere } from "./peers.ts";

const test = suite("conformance/hpack");

const sessions = 100;
const blocksPerSession = 100;

/** A field as the peers' JSON represents it. */
type Words = { readonly name: string; readonly value: string; readonly never: boolean };

/**
 * One block that a side has to encode. `limits`: the table sizes that the reader has announced since the previous
 * block.
 */
type Plan = { readonly limits: number[]; readonly huffman: boolean; readonly fields: Words[] };
type Coded = { readonly limits: number[]; readonly hex: string };
type Decoded = { readonly lists?: Words[][]; readonly error?: string };

const names = [
  ":method",
  ":path",
  ":status",
  "accept",
  "accept-encoding",
  "audit-id",
  "authorization",
  "content-length",
  "cookie",
  "date",
  "impersonate-group",
  "user-agent",
  "x-empty",
  "x-kubernetes-pf-flowschema-uid",
] as const;
const values = [
  "",
  "GET",
  "200",
  "gzip, deflate",
  "0",
  "application/json",
  "kubelet/v1.36.1 (linux/amd64)",
] as const;

function randomWords(random: Random): Words {
  return {
    name: random.chance(0.1) ? `x-${random.below(300)}` : random.pick(names),
    value: random.chance(0.6) ? random.pick(values) : randomText(random),
    never: random.chance(0.05),
  };
}

/** Returns any bytes: short, long, or longer than the table. */
function randomText(random: Random): string {
  const longest = random.chance(0.03) ? 6000 : random.pick([8, 40, 200]);
  const isText = random.chance(0.8);
  return Array.from({ length: random.below(longest) }, () =>
    String.fromCharCode(isText ? 0x20 + random.below(0x5f) : random.below(256)),
  ).join("");
}

function randomPlan(random: Random, changes: number): Plan {
  const limit = (): number => random.pick([0, 40, 200, 1000, 4096, random.below(4097)]);
  return {
    limits: random.chance(0.06) ? Array.from({ length: 1 + random.below(changes) }, limit) : [],
    huffman: random.chance(0.5),
    fields: Array.from({ length: random.below(20) }, () => randomWords(random)),
  };
}

/** Returns sessions in which the reader changes its table size up to `changes` times between two blocks. */
function plansOf(seed: number, changes: number): Plan[][] {
  const random = seeded(seed);
  return Array.from({ length: sessions }, () =>
    Array.from({ length: blocksPerSession }, () => randomPlan(random, changes)),
  );
}

function wordsOf(list: readonly Field[]): Words[] {
  return list.map(({ name, value, isNeverIndexed }) => ({ name, value, never: isNeverIndexed }));
}

function fieldsOf(list: readonly Words[]): Field[] {
  return list.map(({ name, value, never }) => new Field(name, value, never));
}

/**
 * Returns the fields that the other side should read: watchkeeper itself marks credentials and identities as never
 * indexed.
 */
function asWeMark(list: readonly Words[]): Words[] {
  return wordsOf(fieldsOf(list));
}

/** Returns names and values without the never-indexed mark. */
function unmarked(list: readonly (Words | Field)[]): string[] {
  return list.map(({ name, value }) => `${name}: ${value}`);
}

function unlimited(hex: string): Coded {
  return { limits: [], hex };
}

function codedByUs(plans: readonly Plan[]): Coded[] {
  const encoder = new HpackEncoder();
  return plans.map(({ limits, fields }) => {
    for (const limit of limits) encoder.setPeerTableLimit(limit);
    return { limits, hex: encode(encoder, fieldsOf(fields)).toString("hex") };
  });
}

const peers = peersHere();
if (peers.length === 0) test.skip("other implementations agree", () => undefined);

for (const peer of peers) {
  test(`${peer.name} reads what watchkeeper writes`, () => {
    const plans = plansOf(1, 3);
    const requests = plans.map((session) => ({ do: "decode", blocks: codedByUs(session) }));
    const answers = peer.ask<Decoded>(requests);
    for (const [at, { lists, error }] of answers.entries()) {
      assert.is(error, undefined, `session ${at}, block ${lists?.length}`);
      assert.equal(
        lists,
        plans[at]?.map(({ fields }) => asWeMark(fields)),
      );
    }
    figure(`hpack, we to ${peer.name}: ${sessions * blocksPerSession} blocks, 0 differences`);
  });

  test(`watchkeeper reads what ${peer.name} writes`, () => {
    // The reader changes its table size only once between two blocks, because both peers have bugs with two changes:
    // Python's encoder forgets the second, and Go's decoder does not read the two updates that its own encoder writes.
    const plans = plansOf(2, 1);
    const requests = plans.map((blocks) => ({ do: "encode", blocks }));
    const written = peer.ask<{ blocks: string[] }>(requests);
    // A field that a peer writes from its table has lost its never-indexed mark. So the expected fields are what the
    // peer itself decodes from its blocks.
    const reread = peer.ask<Decoded>(
      written.map(({ blocks }) => ({ do: "decode", blocks: blocks.map(unlimited) })),
    );
    for (const [at, { blocks }] of written.entries()) {
      const decoder = new HpackDecoder();
      const lists = blocks.map((hex) => decode(decoder, Buffer.from(hex, "hex")));
      assert.equal(lists.map(wordsOf), reread[at]?.lists?.map(asWeMark), `session ${at}`);
      assert.equal(
        lists.map(unmarked),
        plans[at]?.map(({ fields }) => unmarked(fields)),
        `session ${at}`,
      );
    }
    figure(`hpack, ${peer.name} to us: ${sessions * blocksPerSession} blocks, 0 differences`);
  });
}

test.run();
