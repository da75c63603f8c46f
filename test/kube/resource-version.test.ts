import { suite } from "uvu";
import * as assert from "uvu/assert";
import { compareVersions, isVersion, oldestIn, versionBefore } from "../../src/kube/resource-version.ts";
import { seeded } from "../support/random.ts";

const test = suite("kube/resource-version");

test("a version is decimal, begins with no zero and has 20 digits at most", () => {
  for (const text of ["1", "42", "9007199254740993", "18446744073709551615"])
    assert.is(isVersion(text), true, text);
  for (const text of ["", "0", "07", "-1", "+1", "1.0", "1e3", " 1", "1\n", "x", "٣", "1".repeat(21)])
    assert.is(isVersion(text), false, text);
});

test("versions are compared as numbers of any size, and none is the oldest", () => {
  const ordered = ["", "9", "10", "99", "9007199254740992", "9007199254740993", "18446744073709551615"];
  for (const [index, older] of ordered.entries()) {
    assert.is(compareVersions(older, older), 0);
    for (const newer of ordered.slice(index + 1)) {
      assert.ok(compareVersions(older, newer) < 0, `${older} < ${newer}`);
      assert.ok(compareVersions(newer, older) > 0, `${newer} > ${older}`);
    }
  }
});

test("only the apiserver's own message says where a cache begins", () => {
  assert.is(oldestIn("too old resource version: 7 (4711)"), "4711");
  for (const message of [
    "",
    "too old resource version: 7",
    "too old resource version: 7 ()",
    "too old resource version: 7 (0)",
    "too old resource version: 7 (4711) ",
    `too old resource version: 7 (${"9".repeat(21)})`,
    "The resourceVersion for the provided watch is too old.",
  ])
    assert.is(oldestIn(message), "", message);
});

test("a version has one before it, of any size", () => {
  assert.equal(["1", "10", "18446744073709551615", "0"].map(versionBefore), [
    "0",
    "9",
    "18446744073709551614",
    "0",
  ]);
});

test("they are compared as BigInt does it", () => {
  const random = seeded(1);
  const any = (): string =>
    `${1 + random.below(9)}${Array.from({ length: random.below(38) }, () => random.below(10)).join("")}`;
  for (let index = 0; index < 20_000; index++) {
    const [a, b] = [any(), random.chance(0.1) ? "1" : any()];
    const difference = BigInt(a) - BigInt(b);
    assert.is(Math.sign(compareVersions(a, b)), difference < 0n ? -1 : difference > 0n ? 1 : 0, `${a} ${b}`);
  }
});

test.run();
