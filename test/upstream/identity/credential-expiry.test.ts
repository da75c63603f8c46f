import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { isCredentialOver } from "../../../src/upstream/identity/credential-expiry.ts";
import { jwt } from "../../support/jwt.ts";

const test = suite("upstream/identity/credential-expiry");

const end = 1_800_000_000_000;
const isOver = (value: string, wallMs: number): boolean =>
  isCredentialOver({ fields: [new Field("authorization", value)] }, wallMs);

test("a JWT names its end in seconds", () => {
  for (const value of [`Bearer ${jwt({ exp: end / 1000, sub: "a" })}`, `bearer  ${jwt({ exp: end / 1000 })}`])
    assert.equal([isOver(value, end - 1), isOver(value, end)], [false, true]);
});

test("whatever else it is names none", () => {
  const broken = ["", "Bearer x", "Bearer a.b", "Bearer a.b.c.d", "Bearer a.%%.c", "Basic YTpi"];
  for (const value of [
    ...broken,
    `Bearer ${jwt({})}`,
    `Bearer ${jwt({ exp: "soon" })}`,
    `Bearer ${jwt(null)}`,
  ])
    assert.not(isOver(value, 10 * end), value);
  assert.not(isCredentialOver({ fields: [] }, end));
});

test("64 KiB that look like a token take less than 5 ms", () => {
  const dots = `Bearer ${"a.".repeat(32_768)}`;
  for (const value of [
    `Bearer${" ".repeat(65_000)}`,
    dots,
    `Bearer ${jwt({ exp: 1, a: "b".repeat(48_000) })}`,
  ]) {
    let least = Number.POSITIVE_INFINITY;
    for (let run = 0; run < 5; run += 1) {
      const fields = [new Field("authorization", value)];
      const before = process.threadCpuUsage();
      isCredentialOver({ fields }, end);
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    assert.ok(least < 5, `${value.slice(0, 20)} took ${least} ms`);
  }
});

test("a certificate with an asserted identity ends at its notAfter, whatever bearer stands beside it", () => {
  const fields = [new Field("authorization", `Bearer ${jwt({ exp: 1 })}`)];
  const isEnded = (wallMs: number): boolean =>
    isCredentialOver({ fields, asserted: { notAfter: end } }, wallMs);
  assert.equal([isEnded(end - 1), isEnded(end)], [false, true]);
});

test.run();
