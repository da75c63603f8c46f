import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { kubernetesSource } from "../../../src/ops/discovery/discover.ts";
import type { Source } from "../../../src/ops/discovery/discovery.ts";
import { discoveryLimits } from "../../../src/ops/discovery/limits.ts";
import { AccountTransport, type Transport } from "../../../src/ops/discovery/transport.ts";
import { endApiservers, goodLeases, startApiserver } from "../../support/discoverable.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/account-transport");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-in-cluster-"));
const caFile = join(directory, "ca.crt");
const service = { ...process.env };

test.before(async () => {
  const { authority } = await testPki();
  writeFileSync(caFile, authority.certificate);
});
test.before.each(() => tokenIs("good"));
test.after.each(() => {
  process.env = { ...service };
});
test.after(() => {
  endApiservers();
  rmSync(directory, { recursive: true, force: true });
});

const tokenIs = (token: string): void => writeFileSync(join(directory, "token"), `${token}\n`);

/** Sets the two variables that the kubelet sets in each container. */
function serviceIs(url: string): void {
  const { hostname, port } = new URL(url);
  process.env["KUBERNETES_SERVICE_HOST"] = hostname;
  process.env["KUBERNETES_SERVICE_PORT"] = port;
}

type Options = { readonly from?: "EndpointSlice" | "Lease"; readonly servers?: readonly string[] };

function sourceOf({ from = "EndpointSlice", servers = [] }: Options = {}): Source {
  const access = () => ({ servers, caFile, serverName: "kubernetes.default.svc" });
  return kubernetesSource(from, new AccountTransport(access, directory), access);
}

/** Returns the names of the discovered backends, or the message of the failure. */
async function told(options: Options = {}): Promise<string> {
  const outcome = await within(20_000, "an answer", sourceOf(options).ask());
  return outcome instanceof Failure ? outcome.message : outcome.map(({ name }) => name).join();
}

test("the in-cluster service is asked for its own slice or for leases, with the pod's token", async () => {
  const { url, asked } = await startApiserver();
  serviceIs(url);
  assert.is(await told(), "10.0.0.1:6443");
  assert.is(await told({ from: "Lease" }), "10.0.0.2:6443");
  assert.match(asked[0] ?? "", /\/namespaces\/default\/endpointslices\/kubernetes$/);
  assert.match(asked[1] ?? "", "/namespaces/kube-system/leases?");
});

test("Leases are read page by page, and more of them than can be apiservers' are a failure", async () => {
  const foreign = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ metadata: { name: `x-${at}` }, spec: {} }));
  const { url, asked } = await startApiserver(false, [...foreign(300), ...goodLeases.items]);
  serviceIs(url);
  assert.is(await told({ from: "Lease" }), "10.0.0.2:6443");
  assert.is(asked.length, Math.ceil(301 / limits.discoveredBackends));
  const crowded = await startApiserver(false, foreign(5000));
  serviceIs(crowded.url);
  assert.match(await told({ from: "Lease" }), "more than 512 Leases have the label");
  assert.is(crowded.asked.length, discoveryLimits.leasePages);
  // A server may ignore the limit of a page.
  const answer = { items: foreign(600) };
  const transport: Transport = { own: "https://a", ask: () => Promise.resolve({ answer }), abort() {} };
  const access = () => ({ servers: [], caFile, serverName: undefined });
  const whole = await kubernetesSource("Lease", transport, access).ask();
  assert.match(whole instanceof Failure ? whole.message : "", "more than 512 Leases");
});

test("known backends are asked first, and one that hangs only costs its time", async () => {
  const [mute, well, own] = [await startApiserver(true), await startApiserver(), await startApiserver()];
  serviceIs(own.url);
  assert.is(await told({ servers: [mute.url, well.url] }), "10.0.0.1:6443");
  assert.equal([mute.asked.length, well.asked.length, own.asked.length], [1, 1, 0]);
});

test("the token is read anew each time: the kubelet rotates it", async () => {
  serviceIs((await startApiserver()).url);
  tokenIs("old");
  assert.match(await told(), /answered 403$/);
  tokenIs("good");
  assert.is(await told(), "10.0.0.1:6443");
});

test("a token that cannot be used is an error that names its file, and shows no part of it", async () => {
  const { url, asked } = await startApiserver();
  serviceIs(url);
  const file = join(directory, "token");
  for (const [token, why] of [
    ["hush-hush", "answered 403"],
    ["hush\nhush", `"${file}" is not a bearer token`],
    ["hush\r\nx: y", `"${file}" is not a bearer token`],
    ["hush hush", `"${file}" is not a bearer token`],
    ["", `"${file}" is not a bearer token`],
    ["h\u00fcsh", `"${file}" is not a bearer token`],
    ["x".repeat(limits.tokenBytes), `"${file}" is larger than`],
  ] as const) {
    tokenIs(token);
    const complaint = await told();
    assert.match(complaint, why);
    assert.not.match(complaint, /hush|hüsh/);
  }
  rmSync(file);
  assert.is(await told(), `"${file}" does not exist`);
  assert.is(asked.length, 1);
});

test("a server that another authority signed for is not believed", async () => {
  serviceIs((await startApiserver()).url);
  const foreign = join(directory, "foreign.crt");
  const { createAuthority } = await import("../../../src/ops/pki/pki.ts");
  const { wallClock } = await import("../../../src/base/clock.ts");
  writeFileSync(foreign, (await createAuthority({ name: "foreign", clock: wallClock })).certificate);
  const access = () => ({ servers: [], caFile: foreign, serverName: undefined });
  const source = kubernetesSource("Lease", new AccountTransport(access, directory), access);
  const outcome = await within(10_000, "an answer", source.ask());
  assert.match(outcome instanceof Failure ? outcome.message : "", /^https:\S+: .*(signature|verify|issuer)/);
});

test("a look that is given up ends at once", async () => {
  serviceIs((await startApiserver(true)).url);
  const source = sourceOf();
  const asked = source.ask();
  setTimeout(() => source.giveUp(), 50);
  const startedAt = performance.now();
  assert.instance(await within(20_000, "the end", asked), Failure);
  assert.ok(performance.now() - startedAt < 1500);
});

test.run();
