import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { CaBundle } from "../../../src/proxy/tls/ca-bundle.ts";
import { certificateRetryMs } from "../../../src/proxy/tls/reloading-file.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";

const test = suite("proxy/tls/ca-bundle");

const { authority, serving } = await testPki();
const other = await createAuthority({ name: "other", clock: wallClock });
const gone = await createAuthority({ name: "gone", clock: wallClock, notAfter: wallClock.wall() - 1000 });

let directory = "";
let file = "";
const undo: (() => void)[] = [];
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "authority-"));
  file = join(directory, "ca.crt");
});
test.after.each(() => {
  for (const step of undo.splice(0)) step();
  rmSync(directory, { recursive: true });
});

type Watched = {
  readonly kept: CaBundle;
  readonly told: string[];
  readonly clock: ManualClock;
  /** The backends' objection to a new CA bundle, or undefined if they accept it. */
  objection: Failure | undefined;
  swaps: number;
};

function watched(): Watched {
  const manual = manualClock();
  const clock = { ...manual, wall: () => wallClock.wall() };
  const journal = new Journal(clock);
  const told: string[] = [];
  journal.subscribe((entry: Entry) => {
    if (entry.kind === "certificate.loaded") told.push(`loaded ${entry.name}`);
    if (entry.kind === "certificate.refused") told.push(entry.problem.replaceAll(`${directory}/`, ""));
  });
  const kept = CaBundle.load({
    name: "backend-ca",
    file,
    reloadIntervalMs: 1000,
    clock,
    journal,
    prove: async () => state.objection,
    onSwap: () => {
      state.swaps += 1;
    },
  });
  if (kept instanceof Failure) throw new Error(kept.message);
  const state: Watched = { kept, told, clock: manual, objection: undefined, swaps: 0 };
  kept.start();
  undo.push(() => kept.stop());
  return state;
}

/** Lets the file watcher see a change, and lets everything finish that follows from the change. */
async function settle(clock: ManualClock): Promise<void> {
  for (let turns = 0; turns < 30; turns++) {
    clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("other CAs replace the last ones by themselves, journaled once", async () => {
  writeFileSync(file, authority.certificate);
  const one = watched();
  writeFileSync(file, authority.certificate + other.certificate);
  await settle(one.clock);
  assert.is(one.kept.ca, authority.certificate + other.certificate);
  assert.equal([one.told, one.swaps], [["loaded backend-ca", "loaded backend-ca"], 1]);
  await settle(one.clock);
  assert.is(one.told.length, 2);
});

const bad: readonly (readonly [string, string, RegExp])[] = [
  ["an empty file", "", /^Cannot use "ca.crt": no certificate among its 0 characters$/],
  ["a key in its place", serving.key, /no certificate among its blocks: PRIVATE KEY$/],
  ["a file cut short", authority.certificate.slice(0, 300), /the file ends inside a CERTIFICATE$/],
  [
    "a broken one among good ones",
    `${other.certificate}-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n`,
    /certificate 2 of 2 is broken$/,
  ],
  ["one that has ended", gone.certificate, /^Cannot use "ca.crt": the certificate of "CN=gone" expired at /],
  ["too much", "#".repeat(limits.certificateBytes + 1), /is larger than/],
];

for (const [title, text, problem] of bad)
  test(`${title} is named, the last good authorities go on counting, and good ones heal it (A50)`, async () => {
    writeFileSync(file, authority.certificate);
    const one = watched();
    writeFileSync(file, text);
    await settle(one.clock);
    one.clock.advance(certificateRetryMs);
    await settle(one.clock);
    assert.is(one.kept.ca, authority.certificate);
    assert.is(one.told.length, 2);
    assert.match(one.told[1] ?? "", problem);
    writeFileSync(file, other.certificate);
    await settle(one.clock);
    assert.is(one.kept.ca, other.certificate);
    assert.is(one.told.at(-1), "loaded backend-ca");
  });

test("a file that vanishes changes nothing, and the same one back again is journaled", async () => {
  writeFileSync(file, authority.certificate);
  const one = watched();
  unlinkSync(file);
  await settle(one.clock);
  assert.equal(one.told.slice(1), ['Cannot use "ca.crt": does not exist']);
  writeFileSync(file, authority.certificate);
  await settle(one.clock);
  assert.equal([one.told.slice(2), one.swaps], [["loaded backend-ca"], 0]);
});

test("one that ends beside one that holds is taken: authorities overlap while they change", async () => {
  writeFileSync(file, authority.certificate);
  const one = watched();
  writeFileSync(file, gone.certificate + other.certificate);
  await settle(one.clock);
  assert.is(one.kept.ca, gone.certificate + other.certificate);
});

test("a CA that no backend's certificate leads to waits until one does", async () => {
  writeFileSync(file, authority.certificate);
  const one = watched();
  one.objection = new Failure("bad-file", "proxy", "backend a leads to none of them");
  writeFileSync(file, other.certificate);
  await settle(one.clock);
  assert.is(one.kept.ca, authority.certificate);
  assert.is(one.told[1], 'Cannot use "ca.crt": backend a leads to none of them');
  one.objection = undefined;
  one.clock.advance(certificateRetryMs);
  await settle(one.clock);
  assert.equal([one.kept.ca, one.swaps], [other.certificate, 1]);
});

test("a ConfigMap's ..data link that is swapped is a change", async () => {
  for (const [version, { certificate }] of Object.entries({ v1: authority, v2: other })) {
    mkdirSync(join(directory, version));
    writeFileSync(join(directory, version, "ca.crt"), certificate);
  }
  symlinkSync("v1", join(directory, "..data"));
  symlinkSync("..data/ca.crt", file);
  const one = watched();
  symlinkSync("v2", join(directory, "..data_tmp"));
  renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
  await settle(one.clock);
  assert.is(one.kept.ca, other.certificate);
});

test("after stop nothing is loaded any more, and without a first one there is none", async () => {
  assert.throws(watched, /does not exist/);
  writeFileSync(file, authority.certificate);
  const one = watched();
  one.kept.stop();
  writeFileSync(file, other.certificate);
  await settle(one.clock);
  assert.is(one.kept.ca, authority.certificate);
});

test.run();
