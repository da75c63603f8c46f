import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { kubernetesSource } from "../../../src/ops/discovery/discover.ts";
import type { Discovered } from "../../../src/ops/discovery/discovered.ts";
import type { Source } from "../../../src/ops/discovery/discovery.ts";
import { KubernetesChild } from "../../../src/ops/discovery/kubernetes-child.ts";
import type { Access } from "../../../src/ops/discovery/transport.ts";
import { endApiservers, startApiserver } from "../../support/discoverable.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/discover-child");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-ask-"));
const caFile = join(directory, "ca.crt");
const sources: Source[] = [];
test.after(() => {
  for (const source of sources) source.stop();
  endApiservers();
  rmSync(directory, { recursive: true, force: true });
});

async function kubeconfig(server: string, token = "good"): Promise<string> {
  const { authority } = await testPki();
  writeFileSync(caFile, authority.certificate);
  const file = join(directory, `kubeconfig-${token.length}`);
  const named = { clusters: [{ name: "c", cluster: { server, "certificate-authority": caFile } }] };
  const rest = {
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  };
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: "v1", kind: "Config", "current-context": "x", ...named, ...rest }),
  );
  return file;
}

type Asked = Partial<Access> & {
  readonly from?: "EndpointSlice" | "Lease";
  readonly kubeconfigFile: string;
};

/** Returns the child's answer to one query: the names of the backends, or the error message. */
async function told({ from = "EndpointSlice", kubeconfigFile, ...more }: Asked): Promise<string> {
  const access = () => ({ servers: [], caFile, serverName: "kubernetes.default.svc", ...more });
  const source = kubernetesSource(
    from,
    new KubernetesChild({ kubeconfigFile, access, name: "discovery" }),
    access,
  );
  sources.push(source);
  const outcome: readonly Discovered[] | Failure = await within(20_000, "an answer", source.ask());
  source.stop();
  return outcome instanceof Failure ? outcome.message : outcome.map(({ name }) => name).join();
}

test("the kubeconfig's server is asked for the apiservers' own slice or for leases", async () => {
  const { url, asked } = await startApiserver();
  const kubeconfigFile = await kubeconfig(url);
  assert.is(await told({ kubeconfigFile }), "10.0.0.1:6443");
  assert.is(await told({ kubeconfigFile, from: "Lease" }), "10.0.0.2:6443");
  assert.match(asked[0] ?? "", /\/namespaces\/default\/endpointslices\/kubernetes$/);
  assert.match(
    asked[1] ?? "",
    "/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io%2Fidentity",
  );
});

test("known backends are asked first, and one that hangs only costs its time", async () => {
  const [mute, well, own] = [await startApiserver(true), await startApiserver(), await startApiserver()];
  const kubeconfigFile = await kubeconfig(own.url);
  assert.is(await told({ kubeconfigFile, servers: [mute.url, well.url] }), "10.0.0.1:6443");
  assert.equal([mute.asked.length, well.asked.length, own.asked.length], [1, 1, 0]);
});

test("when no server answers, the error has each server's reason, and no secret", async () => {
  const { url } = await startApiserver();
  const kubeconfigFile = await kubeconfig(url, "wrong");
  // No process listens on port 2, and fetch does not refuse this port as a forbidden one.
  const complaint = await told({ kubeconfigFile, servers: ["https://127.0.0.1:2"] });
  assert.match(complaint, /^https:\/\/127\.0\.0\.1:2: connect ECONNREFUSED/);
  assert.match(complaint, `${url}: answered 403`);
  assert.not.match(complaint, "wrong");
});

test("a server of another authority or name is not believed", async () => {
  const { url } = await startApiserver();
  const kubeconfigFile = await kubeconfig("https://127.0.0.1:2");
  const complaint = await told({ kubeconfigFile, servers: [url], serverName: "elsewhere.test" });
  assert.match(complaint, /elsewhere\.test/);
});

test("a kubeconfig whose token has a line break, or whose server needs a proxy, is told without a secret", async () => {
  const { url, asked } = await startApiserver();
  const kubeconfigFile = await kubeconfig(url, "hush\nhush");
  const complaint = await told({ kubeconfigFile });
  assert.match(complaint, `the token of ${kubeconfigFile} has a line break`);
  const text = readFileSync(kubeconfigFile, "utf8").replace(
    '"server"',
    '"proxy-url":"http://127.0.0.1:2","server"',
  );
  writeFileSync(kubeconfigFile, text);
  assert.match(await told({ kubeconfigFile }), "has a proxy-url, which watchkeeper does not support");
  assert.equal(asked, []);
});

test("a kubeconfig that is not there is told", async () => {
  assert.match(await told({ kubeconfigFile: join(directory, "absent") }), "absent");
});

test.run();
