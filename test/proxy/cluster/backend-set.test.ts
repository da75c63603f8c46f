import { readFileSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { type Config, type ConfigForCluster, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { BackendSet } from "../../../src/proxy/cluster/backend-set.ts";
import { manualClock } from "../../support/clock.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { within } from "../../support/within.ts";

const test = suite<{ proxy: TestProxy }>("proxy/backend-set");

test.before.each(async (context) => {
  context.proxy = await startProxy({ backends: 2 });
});
test.after.each(async ({ proxy }) => {
  await proxy.stop();
});

/** Returns the proxy's own configuration with `lines` in place of its cluster's backends. */
function configOf(proxy: TestProxy, lines: string): ConfigForCluster {
  const config = wholeOf(proxy, lines);
  return { ...config, cluster: config.clusters[0] };
}

function wholeOf({ directory, port, plainPort }: TestProxy, lines: string): Config {
  const file = join(directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8")
    .replace("127.0.0.1:0", `127.0.0.1:${port}`)
    .replace("127.0.0.1:0", `127.0.0.1:${plainPort}`)
    .replace(/ {4}backends:\n(?: {6}-.*\n)+/, `    ${lines}\n`);
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config;
}

/** Returns a backend set on a manual clock, which stands still. Files are therefore read only at the start. */
function setOf(config: ConfigForCluster, ready: readonly string[] = [], prefix = "") {
  const told: (readonly string[])[] = [];
  const clock = manualClock();
  const journal = new Journal(clock);
  const set = BackendSet.of(config, {
    clock,
    journal,
    prefix,
    onChange: (names) => void told.push(names),
    isReady: (name) => ready.includes(name),
    answers: (name) => ready.includes(name),
  });
  if (set instanceof Failure) throw new Error(set.message);
  return { set, told, clock };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function list(proxy: TestProxy, entries: readonly (readonly [string, string])[]): void {
  const lines = entries.map(([name, url]) => `- {name: ${name}, url: "${url}"}\n`);
  writeFileSync(join(proxy.directory, "list.yaml"), lines.join(""));
}

test("those listed are there at once, those found come with the answer", async ({ proxy }) => {
  list(proxy, [
    ["b", "https://10.0.0.2:6443"],
    ["same", "https://10.0.0.1:6443"],
  ]);
  const config = configOf(
    proxy,
    "backends: [{name: a, url: 'https://10.0.0.1:6443'}]\n    discovery: {type: File, file: list.yaml}",
  );
  const { set, told } = setOf(config);
  set.start();
  await turn();
  assert.equal(told, [["a"], ["a", "b"]]);
  assert.is(set.addressOf("b").tls?.serverName, "10.0.0.2");
  assert.is(set.addressOf("gone").port, 0);
  assert.is(set.record?.found, 2);
  set.stop();
});

test("a fallback serves until another backend does, and again when none does", async ({ proxy }) => {
  list(proxy, [["b", "https://10.0.0.2:6443"]]);
  const config = configOf(
    proxy,
    "discovery: {type: File, file: list.yaml, fallback: {name: service, url: 'https://10.96.0.1'}}",
  );
  const ready = ["service"];
  const { set, told, clock } = setOf(config, ready);
  set.start();
  await turn();
  assert.equal(told, [["service"], ["service", "b"]]);
  ready.push("b");
  clock.advance(1000);
  assert.equal(told.slice(2), [["b"]]);
  clock.advance(5000);
  assert.is(told.length, 3);
  ready.length = 0;
  clock.advance(1000);
  assert.equal(told.slice(3), [["service", "b"]]);
  set.stop();
  ready.push("b");
  clock.advance(5000);
  assert.is(told.length, 4);
});

test("the certificate of what DNS found carries the name, not the address", async ({ proxy }) => {
  const { set, told } = setOf(configOf(proxy, "discovery: {type: DNS, hostname: localhost, port: 6443}"));
  set.start();
  for (let turns = 0; told.length < 2 && turns < 1000; turns += 1) await turn();
  assert.ok(told[1]?.includes("127.0.0.1:6443"));
  const { host, tls } = set.addressOf("127.0.0.1:6443");
  assert.equal([host, tls?.serverName], ["127.0.0.1", "localhost"]);
  set.stop();
});

test("the proxy's own listener is no backend, whichever source lists it", async ({ proxy }) => {
  const own = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
  const here =
    own.find(({ address }) => address.includes(".") && address !== "127.0.0.1")?.address ?? "127.0.0.2";
  list(proxy, [
    ["ourselves", `https://${here}:${proxy.port}`],
    ["loop", `https://127.0.0.1:${proxy.plainPort}`],
    ["other", `https://10.9.9.9:${proxy.port}`],
  ]);
  const config = configOf(proxy, "discovery: {type: File, file: list.yaml}");
  const [first, ...others] = config.listeners;
  const listeners = [
    { ...first, address: { host: "0.0.0.0", port: proxy.port } },
    ...others,
  ] as Config["listeners"];
  const { set, told } = setOf({ ...config, listeners });
  set.start();
  await turn();
  assert.equal(told.at(-1), ["other"]);
  set.stop();
  // A static pod on its apiserver's node: the apiserver listens on the node's address, on the proxy's own port number.
  const beside = setOf(config);
  beside.set.start();
  await turn();
  assert.equal(beside.told.at(-1), ["other", "ourselves"]);
  beside.set.stop();
});

test("another source keeps what the last one found until it answers itself", async ({ proxy }) => {
  list(proxy, [["b", "https://10.0.0.2:6443"]]);
  const { set, told } = setOf(configOf(proxy, "discovery: {type: File, file: list.yaml}"));
  set.start();
  await turn();
  const take = await set.prepare(configOf(proxy, "discovery: {type: File, file: absent.yaml}"));
  assert.not.instance(take, Failure);
  if (take instanceof Failure) return;
  take();
  await turn();
  assert.equal(told.at(-1), ["b"]);
  const takeNone = await set.prepare(configOf(proxy, "backends: [{name: a, url: 'https://10.0.0.1'}]"));
  if (!(takeNone instanceof Failure)) takeNone();
  assert.equal([told.at(-1), set.record], [["a"], undefined]);
});

async function askedBackend({ url, ca }: TestProxy): Promise<string> {
  const session = http2.connect(url, { ca });
  session.on("error", () => {});
  const chunks: Buffer[] = [];
  for await (const chunk of session.request({ ":path": "/api" })) chunks.push(chunk as Buffer);
  session.close();
  return Buffer.concat(chunks).toString().slice(0, 1);
}

test("a backend that is found serves, and one that is gone does not, while the others stay", async ({
  proxy,
}) => {
  const [a, b] = proxy.backends;
  if (a === undefined || b === undefined) throw new Error("Two backends were asked for");
  list(proxy, [["b", `https://localhost:${b.port}`]]);
  assert.equal(await proxy.running.reload(wholeOf(proxy, "discovery: {type: File, file: list.yaml}")), []);
  // Until the proxy has read the file, the backends of the old configuration stay. Then `a` leaves, because neither the
  // configuration nor the file names it.
  await within(
    3000,
    "b alone",
    until(async () => (await askedBackend(proxy)) === "b"),
  );
  list(proxy, [
    ["a", `https://localhost:${a.port}`],
    ["b", `https://localhost:${b.port}`],
  ]);
  await within(
    5000,
    "a and b",
    until(async () => (await askedBackend(proxy)) === "a"),
  );
  const closed = proxy.entries.filter(
    (entry) => entry.kind === "upstream_connection.closed" && entry.backend === "b",
  );
  assert.is(closed.length, 0);
  const changes = proxy.entries.filter((entry) => entry.kind === "discovery.changed");
  assert.equal(changes.at(-1), { kind: "discovery.changed", from: "File", added: ["a"], removed: [] });
});

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 50));
}

test("a reload that names a CA of another cluster is refused, unless it names other backends, too", async ({
  proxy,
}) => {
  const { certificate } = await createAuthority({ name: "another cluster", clock: wallClock });
  const file = join(proxy.directory, "stranger.crt");
  writeFileSync(file, certificate);
  const same = join(proxy.directory, "same.crt");
  writeFileSync(same, proxy.ca);
  const config = configOf(
    proxy,
    `backends: [{name: a, url: 'https://127.0.0.1:${proxy.backends[0]?.port}'}]`,
  );
  const { set } = setOf(config, ["a"]);
  set.start();
  const withCa = (caFile: string, of = config): ConfigForCluster => {
    const { tls } = of.cluster;
    return { ...of, cluster: { ...of.cluster, tls: tls && { ...tls, caFile } } };
  };
  const refused = await set.prepare(withCa(file));
  assert.match(
    refused instanceof Failure ? refused.message : "taken",
    /stranger\.crt.*backend a presents a certificate from another CA/,
  );
  assert.type(await set.prepare(withCa(same)), "function");
  const others = configOf(proxy, "backends: [{name: b, url: 'https://10.0.0.1'}]");
  assert.type(await set.prepare(withCa(file, others)), "function");
  set.stop();
});

test("an authority that is missing refuses the whole configuration", ({ proxy }) => {
  const config = configOf(proxy, "backends: [{name: a, url: 'https://10.0.0.1'}]");
  const tls = {
    caFile: join(proxy.directory, "absent.crt"),
    reloadIntervalMs: 10_000,
    serverName: undefined,
    frontProxy: undefined,
    impersonator: undefined,
  };
  const parts = {
    clock: manualClock(),
    journal: new Journal(manualClock()),
    prefix: "",
    onChange() {},
    isReady: () => false,
    answers: () => false,
  };
  const outcome = BackendSet.of({ ...config, cluster: { ...config.cluster, tls } }, parts);
  assert.match(outcome instanceof Failure ? outcome.message : "", "absent.crt");
});

test("weights come from the configuration; a backend is near unless its zone and the process's differ", ({
  proxy,
}) => {
  const lines =
    "backends: [{name: a, url: 'https://10.0.0.1', weight: 3, zone: eu-1a}, {name: b, url: 'https://10.0.0.2', zone: eu-1b}, {name: c, url: 'https://10.0.0.3'}]";
  const config = configOf(proxy, lines);
  const traits = (zone?: string) => {
    const { set } = setOf(zone === undefined ? config : { ...config, zone }, [], "eu/");
    set.start();
    set.stop();
    return ["a", "b", "c"].map((name) => set.traitsOf(`eu/${name}`));
  };
  assert.equal(traits(), [
    { weight: 3, isNear: true },
    { weight: 1, isNear: true },
    { weight: 1, isNear: true },
  ]);
  assert.equal(
    traits("eu-1a").map(({ isNear }) => isNear),
    [true, false, true],
  );
  assert.equal(setOf(config).set.traitsOf("removed"), { weight: 1, isNear: true });
});

test.run();
