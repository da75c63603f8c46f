/** Requests that assert an identity go only to backends that have shown that they take it. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { identityOf } from "../../src/upstream/identity/asserted-identity.ts";
import { shownBy, usualNames } from "../support/certificate.ts";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("flows/unproven-identity");

const shown = await shownBy({ name: "alice", groups: ["devs"] });
const lasting = { ...shown, notAfter: Number.MAX_SAFE_INTEGER };
const identity = identityOf(lasting, { clientCerts: "FrontProxy", names: usualNames });
const json = new Field("content-type", "application/json");
const target = "/api/v1/pods?watch=1&resourceVersion=5";

type Verdict = "proven" | "refused" | "unknown";

function scene(verdicts: Readonly<Record<string, Verdict>>) {
  const now = new Map<string, Verdict>(Object.entries(verdicts));
  const path = new PlayedPath([...now.keys()], {
    assertions: {
      isProven: (_trust, backend) => now.get(backend) === "proven",
      areRefused: () => [...now.values()].every((one) => one === "refused"),
      ready() {},
    },
  });
  path.settle();
  const become = (backend: string, verdict: Verdict): void => {
    now.set(backend, verdict);
    path.pending.release();
    path.settle();
  };
  const asked = (): number[] => [...now.keys()].map((name) => path.backend(name).asked.length);
  return { path, become, asked };
}

test("requests of clients with certificates go to the proven backend alone, bearer requests to all", () => {
  const { path, asked } = scene({ a: "refused", b: "proven", c: "unknown" });
  for (let count = 0; count < 12; count += 1) path.client({ identity }).ask("GET", "/api/v1/pods");
  path.settle();
  assert.equal(asked(), [0, 12, 0]);
  for (let count = 0; count < 30; count += 1) path.client().ask("GET", "/api/v1/pods", [bearer(`t${count}`)]);
  path.settle();
  assert.ok((asked()[0] ?? 0) > 0, "the backend that refuses identities serves bearer tokens");
});

test("while no backend has answered, such requests wait, unsent, and go on when one has proven it", () => {
  const { path, become, asked } = scene({ a: "unknown", b: "unknown" });
  const waiting = path.client({ identity }).ask("POST", "/api/v1/pods");
  path.settle();
  path.clock.advance(1000);
  assert.equal(asked(), [0, 0]);
  become("a", "refused");
  assert.equal(asked(), [0, 0]);
  become("b", "proven");
  assert.equal(asked(), [0, 1]);
  path.backend("b").last.answer(201, "made");
  path.settle();
  assert.is(waiting.status, "201");
});

test("if no backend answers in time, the client gets 503 with the reason, and may repeat even a write", () => {
  const { path, asked } = scene({ a: "unknown" });
  const waiting = path.client({ identity }).ask("POST", "/api/v1/pods");
  path.settle();
  path.clock.advance(3000);
  path.settle();
  assert.is(waiting.status, "503");
  assert.match(waiting.body, "No backend has shown yet that it accepts this proxy's word for the user");
  assert.equal(asked(), [0]);
});

test("if all backends refuse, the client gets 503 with the reason at once, also for a watch, and a bearer request passes", () => {
  const { path, asked } = scene({ a: "refused" });
  const client = path.client({ identity });
  const answers = [
    client.ask("GET", "/api/v1/pods"),
    client.ask("GET", target),
    client.ask("POST", "/api/v1/pods"),
  ];
  path.settle();
  for (const answer of answers) {
    assert.is(answer.status, "503");
    assert.match(answer.body, "do not accept this proxy's word for the user of a client certificate");
    assert.match(answer.body, '"kind":"Status"');
  }
  assert.equal(asked(), [0]);
  path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  assert.equal(asked(), [1]);
});

test("a request that waits for a connection when its backend refuses is never sent on that connection", () => {
  const { path, become, asked } = scene({ a: "proven" });
  path.backend("a").maxStreams = 1;
  const client = path.client({ identity });
  const first = client.ask("GET", "/api/v1/pods");
  path.settle();
  path.backend("a").losesHandshakes = true;
  const waiting = client.ask("GET", "/api/v1/nodes");
  path.settle();
  assert.equal(asked(), [1]);
  become("a", "refused");
  path.backend("a").last.answer(200, "{}");
  path.settle();
  path.clock.advance(1000);
  path.settle();
  assert.equal([asked(), first.status, waiting.status], [[1], "200", "503"]);
});

test("a watch of a lost backend moves to a proven backend only", () => {
  const { path } = scene({ a: "proven", b: "refused", c: "refused" });
  const watch = path.client({ identity }).ask("GET", target);
  path.settle();
  path.backend("a").last.side?.sendHeaders([new Field(":status", "200"), json], false);
  path.settle();
  path.backend("a").kill();
  path.settle();
  path.clock.advance(5000);
  path.settle();
  assert.is(path.backend("b").asked.length + path.backend("c").asked.length, 0);
  assert.is(watch.resetCode, undefined);
});

test("connections of a certificate that was not proven take no request after its replacement", () => {
  const { path, become, asked } = scene({ a: "proven" });
  path.client({ identity }).ask("GET", "/api/v1/pods");
  path.settle();
  path.backend("a").last.answer(200, "{}");
  path.settle();
  become("a", "unknown");
  // The new certificate is proven. The proxy's connection still presents the old one, and no new one opens.
  path.backend("a").losesHandshakes = true;
  path.pools.renew("front-proxy", () => false);
  become("a", "proven");
  path.client({ identity }).ask("GET", "/api/v1/pods");
  path.settle();
  assert.equal(asked(), [1]);
});

test.run();
