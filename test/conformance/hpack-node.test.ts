/**
 * Compares our HPACK with nghttp2 inside Node. nghttp2 accepts only valid messages. Each exchange tests both
 * directions.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { figure } from "../support/figure.ts";
import { type Random, seeded } from "../support/random.ts";
import { within } from "../support/within.ts";
import { NodePeer } from "./node-peer.ts";

const test = suite("conformance/hpack-node");

const sessions = 100;
const batches = 10;
const exchangesPerBatch = 10;

const names = [
  "accept",
  "authorization",
  "cookie",
  "impersonate-group",
  "user-agent",
  "x-empty",
  "x-note",
] as const;
const values = ["", "application/json", "kubelet/v1.36.1 (linux/amd64)", "0", "gzip, deflate"] as const;

/** Returns text without blanks, because HTTP permits none at the edges of a value. */
function randomText(random: Random): string {
  const longest = random.chance(0.02) ? 5000 : random.pick([8, 40, 200]);
  return Array.from({ length: random.below(longest) }, () =>
    String.fromCharCode(0x21 + random.below(0x5e)),
  ).join("");
}

function randomFields(random: Random, all: readonly [string, ...string[]]): Field[] {
  return Array.from({ length: random.below(12) }, () => {
    const name = random.chance(0.2) ? `x-${random.below(300)}` : random.pick(all);
    const value = random.chance(0.6) ? random.pick(values) : randomText(random);
    return new Field(name, value, random.chance(0.05));
  });
}

function randomPair(random: Random): { request: Field[]; answer: Field[] } {
  return {
    request: [
      new Field(":method", random.pick(["GET", "DELETE"])),
      new Field(":scheme", "https"),
      new Field(":authority", "10.0.0.1:6443"),
      new Field(":path", `/${randomText(random)}`),
      ...randomFields(random, [...names]),
    ],
    answer: [
      new Field(":status", random.pick(["200", "201", "404", "503"])),
      ...randomFields(random, ["cache-control", "x-a", "x-b", "x-kubernetes-pf-flowschema-uid"]),
      new Field("date", randomText(random)),
    ],
  };
}

function raw(list: readonly Field[]): string[] {
  return list.flatMap(({ name, value }) => [name, value]);
}

function sensitive(list: readonly Field[]): string[] {
  return [...new Set(list.filter((field) => field.isNeverIndexed).map(({ name }) => name))].toSorted();
}

async function runSession(seed: number): Promise<void> {
  const random = seeded(seed);
  const peer = new NodePeer(random.pick([4096, 256, 0]));
  for (let batch = 0; batch < batches; batch++) {
    if (random.chance(0.3)) await peer.announce(random.pick([0, 60, 1000, 4096, 65_536]));
    const pairs = Array.from({ length: exchangesPerBatch }, () => randomPair(random));
    for (const [at, { seen, answer }] of (await peer.exchange(pairs)).entries()) {
      const { request = [], answer: meant = [] } = pairs[at] ?? {};
      assert.equal(seen.raw, raw(request), `seed ${seed}, batch ${batch}`);
      assert.equal(
        [...new Set(seen.sensitive)].toSorted(),
        sensitive(request),
        `seed ${seed}, batch ${batch}`,
      );
      assert.equal(raw(answer), raw(meant), `seed ${seed}, batch ${batch}`);
    }
  }
  peer.destroy();
}

test("nghttp2 reads what watchkeeper writes, and the reverse", async () => {
  for (let seed = 1; seed <= sessions; seed++) await within(10_000, `seed ${seed}`, runSession(seed));
  const blocks = sessions * batches * exchangesPerBatch;
  figure(
    `hpack, we to nghttp2 (node ${process.versions.node}) and back: ${blocks} blocks each, 0 differences`,
  );
});

test.run();
