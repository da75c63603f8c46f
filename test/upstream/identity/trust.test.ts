import { inspect } from "node:util";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import type { RequestHead } from "../../../src/h2/core/fields.ts";
import {
  endedBearerMs,
  isTokenAccepted,
  provenMs,
  rememberedBearers,
  Trust,
} from "../../../src/upstream/identity/trust.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("upstream/identity/trust");

function request(token: string): RequestHead {
  const fields = token === "" ? [] : [new Field("authorization", `Bearer ${token}`)];
  return { method: "GET", scheme: "https", path: "/", authority: "", contentLength: -1, fields };
}

const memo = () => ({ value: "", bearer: undefined });

test("a bearer is proven once it was accepted, for ten minutes, on every socket", () => {
  const clock = manualClock();
  const trust = new Trust(clock);
  const credential = trust.credentialOf(request("t"), memo());
  assert.is(trust.classOf(credential), "unproven");
  trust.learn(credential, true);
  assert.is(trust.classOf(trust.credentialOf(request("t"), memo())), "proven");
  assert.is(trust.classOf(trust.credentialOf(request("other"), memo())), "unproven");
  clock.advance(provenMs);
  assert.is(trust.classOf(credential), "unproven");
});

test("of all statuses, only 2xx, 403, 404, 409 and 422 of the apiserver or a webhook show that a token was accepted, and only the apiserver's 401 that it was not", () => {
  for (let status = 100; status < 600; status += 1) {
    const isAuthenticated = (status >= 200 && status < 300) || [403, 404, 409, 422].includes(status);
    const shown = isAuthenticated || undefined;
    const refused = status === 401 ? false : shown;
    assert.is(isTokenAccepted(status, "apiserver", false), refused, `${status}`);
    assert.is(isTokenAccepted(status, "webhook", false), shown, `${status} of a webhook`);
    assert.is(isTokenAccepted(status, "other", false), undefined, `${status} of another server`);
    assert.is(
      isTokenAccepted(status, "other", true),
      status === 401 ? false : undefined,
      `${status} with GOAWAY`,
    );
  }
});

test("of a bearer beyond 16 KiB nothing is kept with its connection, and it is known again (A26)", () => {
  const trust = new Trust(manualClock());
  const [usual, endless] = [memo(), memo()];
  trust.credentialOf(request("t".repeat(12_000)), usual);
  assert.is(usual.value.length, "Bearer ".length + 12_000);
  const long = request("t".repeat(limits.usualHeadBytes));
  trust.learn(trust.credentialOf(long, endless), true);
  assert.is(endless.value, "");
  assert.is(trust.classOf(trust.credentialOf(long, endless)), "proven");
});

test("a request before it was accepted, on another socket even, is proven with it, and no more when it is refused", () => {
  const trust = new Trust(manualClock());
  const [early, later] = [memo(), memo()];
  const first = trust.credentialOf(request("t"), early);
  trust.credentialOf(request("t"), later);
  trust.learn(first, true);
  assert.is(trust.classOf(trust.credentialOf(request("t"), later)), "proven");
  trust.learn(trust.credentialOf(request("t"), later), false);
  assert.is(trust.classOf(trust.credentialOf(request("t"), early)), "unproven");
});

test("a JWT is proven until its own expiry at most, unless a backend accepts it long after that: then the proxy's clock is wrong", () => {
  const clock = manualClock();
  const jwt = (endMs: number): string =>
    ["{}", JSON.stringify({ exp: (clock.wall() + endMs) / 1000 }), "signature"]
      .map((part) => Buffer.from(part).toString("base64url"))
      .join(".");
  const provenFor = (token: string): number => {
    const trust = new Trust(clock);
    const credential = trust.credentialOf(request(token), memo());
    trust.learn(credential, true);
    return (credential?.provenUntil ?? 0) - clock.now();
  };
  assert.is(provenFor(jwt(60_000)), 60_000);
  assert.is(provenFor(jwt(provenMs * 2)), provenMs);
  assert.is(provenFor(jwt(-1000)), endedBearerMs);
  assert.is(provenFor(jwt(-3_600_000)), provenMs);
  assert.is(provenFor("opaque"), provenMs);
});

test("one 401 takes the proof back", () => {
  const trust = new Trust(manualClock());
  const credential = trust.credentialOf(request("t"), memo());
  trust.learn(credential, true);
  trust.learn(credential, false);
  assert.is(trust.classOf(credential), "unproven");
});

test("the anonymous are never proven", () => {
  const trust = new Trust(manualClock());
  const credential = trust.credentialOf(request(""), memo());
  trust.learn(credential, true);
  assert.is(trust.classOf(credential), "unproven");
});

test("it remembers a bounded number of bearers, and none of them readable", () => {
  const trust = new Trust(manualClock());
  const first = trust.credentialOf(request("very-secret"), memo());
  trust.learn(first, true);
  assert.not.match(inspect(trust, { depth: 9, showHidden: true }), "very-secret");
  for (let index = 0; index < rememberedBearers; index += 1)
    trust.learn(trust.credentialOf(request(String(index)), memo()), true);
  assert.is(trust.classOf(trust.credentialOf(request("very-secret"), memo())), "unproven");
});

test("what the apiserver does not read as a bearer is anonymous to it, and so to the proxy", () => {
  const trust = new Trust(manualClock());
  for (const value of [
    "Basic dTpw",
    "Bearer",
    "Bearer  t",
    "token",
    "Bearer \xc2\xa0",
    "Bearer \xc2\x85",
    "Bearer \t",
  ]) {
    const fields = [new Field("authorization", value)];
    const credential = trust.credentialOf({ ...request(""), fields }, memo());
    trust.learn(credential, true);
    assert.is(trust.classOf(credential), "unproven", value);
  }
});

test("bearers that no backend accepted push out none that was (A43)", () => {
  const trust = new Trust(manualClock());
  trust.learn(trust.credentialOf(request("good"), memo()), true);
  for (let index = 0; index < 2 * rememberedBearers; index += 1)
    trust.learn(trust.credentialOf(request(String(index)), memo()), false);
  assert.is(trust.classOf(trust.credentialOf(request("good"), memo())), "proven");
});

test.run();
