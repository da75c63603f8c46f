import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { kubernetesSource, sourceOf } from "../../../src/ops/discovery/discover.ts";
import { checkFound } from "../../../src/ops/discovery/discovered.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/discover");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-discover-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

const parts = { clock: wallClock, access: () => ({ servers: [], caFile: "", serverName: undefined }) };

test("a name's addresses are the backends, each at the port", async () => {
  const source = sourceOf({ type: "DNS", hostname: "localhost", port: 6443, intervalMs: 1000 }, parts);
  const found = await within(20_000, "an answer", source.ask());
  assert.not.instance(found, Failure);
  if (found instanceof Failure) return;
  assert.ok(found.some(({ name, host }) => name === "127.0.0.1:6443" && host === "127.0.0.1"));
  assert.ok(found.every(({ port, isEncrypted }) => port === 6443 && isEncrypted));
});

test("a name that is unknown is a Failure that says so", async () => {
  const source = sourceOf({ type: "DNS", hostname: "nowhere.invalid", port: 1, intervalMs: 1000 }, parts);
  const found = await within(30_000, "an answer", source.ask());
  assert.match(found instanceof Failure ? found.message : "", /^Cannot resolve: .*nowhere\.invalid/);
});

test("a file is read, watched, and missed", async () => {
  const file = join(directory, "backends.yaml");
  const source = sourceOf({ type: "File", file, intervalMs: 1000 }, parts);
  const missing = await source.ask();
  assert.match(missing instanceof Failure ? missing.message : "", 'backends.yaml" does not exist');
  const changed = Promise.withResolvers<undefined>();
  const stop = source.watch?.(() => changed.resolve(undefined));
  writeFileSync(file, "- {name: cp-1, url: 'https://10.0.0.1:6443'}\n");
  await within(20_000, "the change", changed.promise);
  stop?.();
  assert.equal(await source.ask(), [{ name: "cp-1", host: "10.0.0.1", port: 6443, isEncrypted: true }]);
});

test("in a pod Kubernetes is asked without a child, of whatever is known now", async () => {
  const source = sourceOf({ type: "EndpointSlice", kubeconfigFile: undefined, intervalMs: 1000 }, parts);
  assert.is(source.from, "EndpointSlice");
  const outcome = await within(20_000, "an answer", source.ask());
  assert.match(outcome instanceof Failure ? outcome.message : "", 'serviceaccount/token" does not exist');
  source.stop();
});

test("Kubernetes is asked by a child, which is not there before it is asked", () => {
  const source = sourceOf({ type: "Lease", kubeconfigFile: "absent", intervalMs: 1000 }, parts);
  assert.is(source.from, "Lease");
  source.stop();
});

test("an object without an apiserver's address is a Failure that says so", async () => {
  const told = async (answer: unknown): Promise<string> => {
    const transport = { own: "https://a", ask: () => Promise.resolve({ answer }), abort() {} };
    const outcome = await kubernetesSource("EndpointSlice", transport, parts.access).ask();
    return outcome instanceof Failure ? outcome.message : JSON.stringify(checkFound(outcome));
  };
  const metadata = { name: "kubernetes" };
  const slice = (address: unknown, port: unknown): object => ({
    metadata,
    endpoints: [{ addresses: [address] }],
    ports: [{ port }],
  });
  assert.match(await told(slice("10.0.0.1", 1)), '"name":"10.0.0.1:1"');
  assert.is(await told([]), "https://a: the response is not an object");
  for (const wrong of [null, {}, { items: [] }])
    assert.is(await told(wrong), "https://a: the response is not the EndpointSlice kubernetes");
  for (const wrong of [{ metadata }, { metadata, endpoints: [{ addresses: null }], ports: null }])
    assert.is(await told(wrong), "https://a: knows no apiserver: no endpoint of default/kubernetes is ready");
  for (const wrong of [slice("a.test", 1), slice(7, 1), slice(["10.0.0.1"], 1)])
    assert.is(await told(wrong), "https://a: endpoints[0].addresses[0] is not an IP address");
  assert.is(await told(slice("10.0.0.1", "1")), "https://a: the port is not a number from 1 to 65535");
});

test.run();
