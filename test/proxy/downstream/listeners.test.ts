import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { type Config, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { within } from "../../support/within.ts";

const test = suite<{ proxy: TestProxy }>("proxy/listeners");

test.before.each(async (context) => {
  context.proxy = await startProxy();
});
test.after.each(async ({ proxy }) => {
  await proxy.stop();
});

/** Returns the proxy's own configuration with some lines changed. */
function changed({ directory, port, plainPort }: TestProxy, change: (text: string) => string): Config {
  const file = join(directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8")
    .replace("127.0.0.1:0", `127.0.0.1:${port}`)
    .replace("127.0.0.1:0", `127.0.0.1:${plainPort}`);
  const config = parseConfig(change(text), file);
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config;
}

async function get(url: string, ca = ""): Promise<string> {
  const session = http2.connect(url, { ca });
  session.on("error", () => {});
  const chunks: Buffer[] = [];
  for await (const chunk of session.request({ ":path": "/api" })) chunks.push(chunk as Buffer);
  session.close();
  return Buffer.concat(chunks).toString();
}

test("a reload opens what is new, on the port of what it replaces, and closes what is gone", async ({
  proxy,
}) => {
  const { running, plainPort, url, ca } = proxy;
  const onlyTls = changed(proxy, (text) => text.replace(/ {2}- \{name: local.*\n/, ""));
  assert.equal(await running.reload(onlyTls), []);
  assert.equal([...running.addresses.keys()], ["kube"]);
  const refused = await get(`http://127.0.0.1:${plainPort}`).catch((error: Error) => error.message);
  assert.match(refused, "ECONNREFUSED");
  const back = changed(proxy, (text) => text.replace("{name: local,", "{name: other,"));
  assert.equal(await running.reload(back), []);
  assert.match(await within(20_000, "an answer", get(`http://127.0.0.1:${plainPort}`)), "GET /api");
  assert.match(await within(20_000, "an answer", get(url, ca)), "GET /api");
});

test("a client of a listener that goes may finish what it has", async ({ proxy }) => {
  const { running, plainPort } = proxy;
  const session = http2.connect(`http://127.0.0.1:${plainPort}`);
  session.on("error", () => {});
  const stream = session.request({ ":path": "/slow", ":method": "POST" });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await running.reload(changed(proxy, (text) => text.replace(/ {2}- \{name: local.*\n/, "")));
  stream.end("late");
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  assert.match(Buffer.concat(chunks).toString(), "POST /slow 4");
  session.close();
});

test("a listener that cannot be opened leaves everything as it was", async ({ proxy }) => {
  const { running, url, ca, plainPort } = proxy;
  const taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(0, "127.0.0.1", resolve);
  });
  const busy = (taken.address() as AddressInfo).port;
  const clash = changed(proxy, (text) => text.replace(`127.0.0.1:${plainPort}`, `127.0.0.1:${busy}`));
  const outcome = await running.reload(clash);
  assert.instance(outcome, Failure);
  assert.match(outcome instanceof Failure ? outcome.message : "", "already in use");
  assert.match(await within(20_000, "an answer", get(url, ca)), "GET /api");
  assert.match(await within(20_000, "an answer", get(`http://127.0.0.1:${plainPort}`)), "GET /api");
  taken.close();
});

test("a listener whose port was taken meanwhile is named, keeps its clients, and comes back", async ({
  proxy,
}) => {
  const { running, plainPort, url, ca, entries } = proxy;
  const session = http2.connect(`http://127.0.0.1:${plainPort}`);
  session.on("error", () => {});
  await new Promise((resolve) => session.once("connect", resolve));
  const busy = createServer();
  await new Promise<void>((resolve) => {
    busy.listen(0, "127.0.0.1", resolve);
  });
  // Binds the port as soon as the reload has closed its listener, so that the reload cannot open it again.
  const thief = createServer();
  const stolen = new Promise<void>((resolve) => thief.once("listening", resolve));
  thief.on("error", () => setTimeout(() => thief.listen(plainPort, "127.0.0.1"), 1));
  thief.listen(plainPort, "127.0.0.1");
  const clash = changed(proxy, (text) =>
    text
      .replace(`127.0.0.1:${plainPort}`, `127.0.0.1:${(busy.address() as AddressInfo).port}`)
      .replace("keyFile: tls.key}", "keyFile: tls.key, reloadInterval: 9s}"),
  );
  const outcome = running.reload(clash);
  await within(20_000, "the theft", stolen);
  assert.instance(await outcome, Failure);
  const lost = entries.find((entry) => entry.kind === "listener.lost");
  assert.match(
    lost?.kind === "listener.lost" ? `${lost.listener}: ${lost.reason}` : "",
    /^local: .*already in use/,
  );
  const readyz = (): Promise<string> =>
    fetch(`http://${running.adminAddress}/readyz`).then((answer) => answer.text());
  assert.match(await readyz(), "[-]listeners failed");
  assert.match(await within(20_000, "an answer", get(url, ca)), "GET /api");
  const chunks: Buffer[] = [];
  for await (const chunk of session.request({ ":path": "/known" })) chunks.push(chunk as Buffer);
  assert.match(Buffer.concat(chunks).toString(), "GET /known");
  session.close();
  thief.close();
  busy.close();
  const isBack = async (): Promise<boolean> =>
    (await readyz()).includes("[+]listeners ok") || !(await readyz()).includes("[-]");
  while (!(await isBack())) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.match(await within(20_000, "an answer", get(`http://127.0.0.1:${plainPort}`)), "GET /api");
});

test("a reload names each time the changed settings that need a restart", async ({ proxy }) => {
  const { running } = proxy;
  const perClient = changed(proxy, (text) =>
    text.replace("name: default\n", "$&    connectionPool: {perClient: true}\n"),
  );
  const named = ["clusters.default.connectionPool.perClient"];
  assert.equal(await running.reload(perClient), named);
  assert.equal(await running.reload(perClient), named);
  assert.equal(await running.reload(changed(proxy, (text) => text)), []);
});

test.run();
