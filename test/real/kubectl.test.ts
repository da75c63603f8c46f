import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Call, type CallOptions, call, type Output } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, pathOf, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/kubectl");
const real = testWith(test, [...clusterNeeds, "kubectl", "tar"]);

let cluster: Cluster;
let proxy: Proxy;
let kubeconfig = "";
let site: Server;

/** Body that a forwarded port sends: large enough to fill a flow-control window many times. */
const page = randomBytes(2_000_000);

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, pods: true });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  kubeconfig = cluster.kubeconfig(proxy.url);
  site = createServer((_, reply) => reply.end(page)).listen(cluster.node.forwardPort, cluster.node.address);
  await succeeds(["apply", "-f", "-"], { input: JSON.stringify(pod("shell")) });
  await succeeds(["wait", "--for=condition=Ready", "pod/shell", "--timeout=20s"]);
});

test.after(async () => {
  if (!real.canRun) return;
  site.close();
  site.closeAllConnections();
  await proxy.stop();
  await cluster.stop();
});

function pod(name: string): object {
  const spec = { nodeName: cluster.node.name, containers: [{ name: "main", image: "none" }] };
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
}

/** HOME is a folder of the test, so that kubectl does not use the user's discovery cache. */
function options(more: CallOptions = {}): CallOptions {
  const home = join(cluster.folder, "home");
  mkdirSync(home, { recursive: true });
  return { timeoutMs: 30_000, ...more, env: { HOME: home, ...more.env } };
}

function command(args: readonly string[]): string[] {
  return [`--kubeconfig=${kubeconfig}`, ...args];
}

function kubectl(args: readonly string[], more: CallOptions = {}): Promise<Output> {
  return call(pathOf("kubectl"), command(args), options(more));
}

async function succeeds(args: readonly string[], more: CallOptions = {}): Promise<string> {
  const said = await kubectl(args, more);
  assert.is(said.code, 0, `kubectl ${args.join(" ")}:\n${said.err}\n${said.out}\n${proxy.tail()}`);
  return said.out;
}

function running(args: readonly string[], more: CallOptions = {}): Call {
  return new Call(pathOf("kubectl"), command(args), options(more));
}

/** Sends SIGINT and waits for the exit. */
async function interrupt(client: Call): Promise<Output> {
  client.signal("SIGINT");
  return client.ended;
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

real("apply, get, patch, replace and delete do what they say", async () => {
  const configMap = (value: string): string =>
    JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { key: value } });
  const value = (): Promise<string> => succeeds(["get", "configmap", "a", "-o", "jsonpath={.data.key}"]);
  assert.match(await succeeds(["apply", "-f", "-"], { input: configMap("one") }), /created/);
  assert.match(await succeeds(["apply", "-f", "-"], { input: configMap("one") }), /unchanged/);
  assert.match(await succeeds(["apply", "-f", "-"], { input: configMap("two") }), /configured/);
  assert.is(await value(), "two");
  for (const [type, patch] of [
    ["merge", '{"data":{"key":"merge"}}'],
    ["strategic", '{"data":{"key":"strategic"}}'],
    ["json", '[{"op":"replace","path":"/data/key","value":"json"}]'],
  ] as const) {
    await succeeds(["patch", "configmap", "a", `--type=${type}`, "-p", patch]);
    assert.is(await value(), type);
  }
  await succeeds(["apply", "--server-side", "--force-conflicts", "-f", "-"], { input: configMap("server") });
  assert.is(await value(), "server");
  await succeeds(["replace", "-f", "-"], { input: configMap("replaced") });
  assert.is(await value(), "replaced");
  assert.match(await succeeds(["delete", "configmap", "a"]), /deleted/);
  assert.match((await kubectl(["get", "configmap", "a"])).err, /NotFound/);
});

real("discovery, tables, explain and raw requests work", async () => {
  assert.match(await succeeds(["api-resources"]), /configmaps +cm +v1 +true/);
  assert.match(await succeeds(["get", "pods", "-A", "-o", "wide"]), /default +shell +1\/1 +Running/);
  assert.match(await succeeds(["explain", "pod.spec.nodeName"]), /FIELD: nodeName/);
  assert.is(await succeeds(["get", "--raw", "/readyz"]), "ok");
  assert.match(await succeeds(["version"]), /Server Version: v1\.36\.1/);
});

real("get -w follows changes, and wait --for=delete sees the end", async () => {
  const watch = running(["get", "configmaps", "-w", "-o", "name"]);
  await succeeds(["create", "configmap", "watched"]);
  await watch.says(/configmap\/watched/);
  const waiting = running(["wait", "--for=delete", "configmap/watched", "--timeout=20s"]);
  await succeeds(["delete", "configmap", "watched"]);
  await watch.says(/configmap\/watched\n[^]*configmap\/watched/); // printed once when it is added, once when it is deleted
  assert.is((await waiting.ended).code, 0);
  await interrupt(watch);
});

real("logs -f says each line when it is written", async () => {
  const logs = running(["logs", "-f", "shell"]);
  for (const line of ["first line", "second line", "third line"]) {
    cluster.node.log(line);
    await logs.says(new RegExp(line));
  }
  await interrupt(logs);
  assert.match(await succeeds(["logs", "shell", "--tail=1"]), /^third line\n$/);
});

const transports = [
  { name: "websocket", env: {} },
  {
    name: "SPDY",
    env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false", KUBECTL_PORT_FORWARD_WEBSOCKETS: "false" },
  },
] as const;

for (const { name, env } of transports) {
  /** kubectl falls back to SPDY silently; only at -v=4 does it print that. */
  const stays = (said: Output): void => assert.not.match(said.err, /fall ?back/i);

  real(`exec over ${name} carries output, errors, the exit code and input`, async () => {
    const script = "echo out; echo err >&2; exit 7";
    const said = await kubectl(["exec", "-v=4", "shell", "--", "sh", "-c", script], { env });
    stays(said);
    assert.is(said.out, "out\n", said.err);
    assert.match(said.err, /^err$/m);
    assert.is(said.code, 7);
    const text = "all of this comes back\n".repeat(50_000);
    const echoed = await kubectl(["exec", "-v=4", "-i", "shell", "--", "cat"], { env, input: text });
    stays(echoed);
    assert.is(
      hashOf(Buffer.from(echoed.out)),
      hashOf(Buffer.from(text)),
      `${echoed.out.length} bytes came back`,
    );
  });

  real(`exec over ${name} talks to and fro while it is open`, async () => {
    const shell = running(["exec", "-v=4", "-i", "shell", "--", "sh"], { env });
    for (let number = 1; number <= 5; number++) {
      shell.write(`echo answer $((${number} * 11))\n`);
      await shell.says(new RegExp(`answer ${number * 11}`));
    }
    shell.endInput();
    const said = await shell.ended;
    stays(said);
    assert.is(said.code, 0, said.err);
  });

  real(`attach over ${name} reads from the container and writes to it`, async () => {
    const attached = running(["attach", "-v=4", "-i", "shell"], { env });
    attached.write(`hello by ${name}\n`);
    await attached.says(new RegExp(`heard hello by ${name}`));
    cluster.node.log(`said while attached by ${name}`);
    await attached.says(new RegExp(`said while attached by ${name}`));
    stays(await interrupt(attached));
  });

  real(`port-forward over ${name} carries many connections, whole`, async () => {
    const forward = running(["port-forward", "-v=4", "pod/shell", ":80"], { env });
    const [, port] = /127\.0\.0\.1:(\d+)/.exec(await forward.says(/Forwarding from 127\.0\.0\.1:\d+/)) ?? [];
    const fetched = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const reply = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
        return hashOf(await reply.bytes());
      }),
    );
    assert.equal(new Set(fetched), new Set([hashOf(page)]));
    stays(await interrupt(forward));
  });

  real(`cp over ${name} copies there and back`, async () => {
    const [from, back] = [join(cluster.folder, `from-${name}`), join(cluster.folder, `back-${name}`)];
    writeFileSync(from, page);
    await succeeds(["cp", from, `shell:there-${name}`], { env });
    assert.is(hashOf(readFileSync(join(cluster.node.podFolder, `there-${name}`))), hashOf(page));
    await succeeds(["cp", `shell:there-${name}`, back], { env });
    assert.is(hashOf(readFileSync(back)), hashOf(page));
  });
}

test.run();
