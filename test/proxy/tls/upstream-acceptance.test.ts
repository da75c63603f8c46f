import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import type { Failure } from "../../../src/base/failure.ts";
import { createAuthority, type Pair } from "../../../src/ops/pki/pki.ts";
import { checkPair } from "../../../src/proxy/tls/serving-pair.ts";
import { askCanary, proofMs, proveCaBundle } from "../../../src/proxy/tls/upstream-acceptance.ts";
import type { AssertingPolicy } from "../../../src/upstream/identity/asserted-identity.ts";
import type { BackendAddress } from "../../../src/upstream/net/connect.ts";
import { usualNames as names } from "../../support/certificate.ts";
import { manualClock } from "../../support/clock.ts";
import { frontProxyPki, type JudgingBackend, startJudge } from "../../support/front-proxy.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/upstream-acceptance");

const { authority } = await testPki();
const pki = await frontProxyPki();
const other = await createAuthority({ name: "other cluster", clock: wallClock });

let judge: JudgingBackend;
test.before(async () => {
  judge = await startJudge("judge", pki);
});
test.after(() => judge.stop());

function at(port: number, name = "judge"): BackendAddress {
  return {
    name,
    host: "127.0.0.1",
    port,
    tls: { ca: authority.certificate, serverName: "localhost" },
  };
}

function trusted(ca: string, ready: readonly BackendAddress[]): Promise<Failure | undefined> {
  return within(20_000, "a word", proveCaBundle(ca, ready, wallClock));
}

const frontProxy = { clientCerts: "FrontProxy", names } as const;
const impersonate = { clientCerts: "Impersonate" } as const;
const lent = { clientCerts: "ActAsImpersonator" } as const;

/** Returns the result of a canary, in words. */
async function canary(pair: Pair, port = judge.port, policy: AssertingPolicy = frontProxy): Promise<string> {
  const checked = checkPair(pair.certificate, pair.key, wallClock.wall());
  if ("code" in checked) throw new Error(checked.message);
  const asked = askCanary(checked, policy, { address: at(port), clock: wallClock });
  const answer = await within(20_000, "an answer", asked);
  return `${answer.kind} ${answer.kind === "proven" ? answer.gap : answer.problem}`.trimEnd();
}

test("a CA to which a backend's certificate leads will do, another cluster's will not", async () => {
  assert.is(await trusted(authority.certificate, [at(judge.port)]), undefined);
  assert.is(await trusted(other.certificate + authority.certificate, [at(judge.port)]), undefined);
  const failure = await trusted(other.certificate, [at(judge.port)]);
  assert.match(failure?.message ?? "", 'the certificate of "CN=other cluster" is unsuitable: backend judge');
});

test("one backend that it suits is enough: authorities change one apiserver after the other", async () => {
  const strange = await startStranger();
  const both = [at(judge.port), at(strange.port, "strange")];
  assert.is(await trusted(authority.certificate, both), undefined);
  assert.is(await trusted(other.certificate, both), undefined);
  strange.stop();
});

/** Starts a backend whose certificate another CA has signed. */
async function startStranger(): Promise<{ readonly port: number; stop(): void }> {
  const { createServer } = await import("node:tls");
  const pair = other.issue({ name: "strange", hosts: ["localhost"] });
  const server = createServer({ cert: pair.certificate, key: pair.key });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    stop: () => void server.close(),
  };
}

test("no backend, none that is ready and none with TLS are no objection", async () => {
  assert.is(await trusted(other.certificate, []), undefined);
  assert.is(await trusted(other.certificate, [at(1)]), undefined);
  assert.is(await trusted(other.certificate, [{ ...at(1), tls: undefined }]), undefined);
});

test("a backend that stays silent is no objection either, after a while", async () => {
  const mute = net.createServer(() => {});
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const { port } = mute.address() as net.AddressInfo;
  const clock = manualClock();
  const word = proveCaBundle(other.certificate, [at(port)], clock);
  await new Promise((resolve) => setTimeout(resolve, 50));
  clock.advance(proofMs);
  assert.is(await within(20_000, "a word", word), undefined);
  mute.close();
});

test("the front proxy's certificate is proven, and so is an impersonator's in both of its modes", async () => {
  const impersonator = pki.clients.issue({ name: "impersonator", usage: "client" });
  assert.is(await canary(pki.pair), "proven");
  assert.is(await canary(impersonator, judge.port, impersonate), "proven");
  assert.is(await canary(impersonator, judge.port, lent), "proven");
});

test("an ordinary client certificate is refused, and the answer names the user that the backend takes it for", async () => {
  const admin = pki.clients.issue({ name: "kubernetes-admin", groups: ["system:masters"], usage: "client" });
  assert.is(await canary(admin), 'refused it takes every client with a certificate for "kubernetes-admin"');
  assert.match(await canary(admin, judge.port, impersonate), "refused it takes every client");
});

test("a certificate of another CA is refused, and a backend that does not answer shows nothing", async () => {
  const pair = other.issue({ name: "front-proxy-client", usage: "client" });
  assert.is(await canary(pair), "refused it answers 401 (Unauthorized)");
  assert.match(await canary(pair, 1), "none connect ECONNREFUSED");
});

test.run();
