/** A proxy with two workers: what clients and operators notice in normal operation, and when a worker dies or hangs. */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../support/free-port.ts";
import { type ProxyOptions, startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

const test = suite("processes/workers");

const proxies: TestProxy[] = [];
const clients: http2.ClientHttp2Session[] = [];
async function start(options: ProxyOptions = {}): Promise<TestProxy> {
  const proxy = await startProxy({
    backends: 2,
    isProbed: true,
    ...options,
    extra: `workers: 2\n${options.extra ?? ""}`,
  });
  proxies.push(proxy);
  await until("all workers serve", () => proxy.running.workers.every(({ state }) => state === "serving"));
  return proxy;
}
test.after.each(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const proxy of proxies.splice(0)) await proxy.stop();
});

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** Returns the status of a GET on a new connection, or the error code. */
function askAnew(port: number): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get({ host: "127.0.0.1", port, path: "/api", agent: false }, (response) => {
      response.resume();
      resolve(String(response.statusCode));
    });
    request.on("error", (error) => resolve("code" in error ? String(error.code) : error.message));
  });
}

async function until(what: string, isSo: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await pause(20);
  }
}

function connect(proxy: TestProxy): http2.ClientHttp2Session {
  const client = http2.connect(proxy.url, { ca: proxy.ca });
  client.on("error", () => {});
  clients.push(client);
  return client;
}

/** Returns the status of a GET; 0 if it ended without one. */
function get(client: http2.ClientHttp2Session, path = "/api/v1/namespaces/x/pods/y"): Promise<number> {
  const answered = new Promise<number>((resolve) => {
    const request = client.request({ ":path": path });
    let status = 0;
    request.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    request.on("error", () => resolve(0));
    request.on("close", () => resolve(status));
    request.resume();
  });
  return within(20_000, path, answered);
}

async function read(proxy: TestProxy, path: string): Promise<Record<string, unknown>> {
  const response = await fetch(`http://${proxy.running.apiAddress}/api/v1/${path}`);
  return (await response.json()) as Record<string, unknown>;
}

/** Returns the sum of a metric over all series whose line contains this text. */
async function metric(proxy: TestProxy, name: string, labels = ""): Promise<number> {
  const text = await (await fetch(`http://${proxy.running.adminAddress}/metrics`)).text();
  return text
    .split("\n")
    .filter((line) => line.replace(/[{ ].*$/, "") === `watchkeeper_${name}` && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

function pidsOf(proxy: TestProxy): readonly number[] {
  return proxy.running.workers.map(({ pid }) => pid);
}

/** Opens six connections, one after another, so that each worker gets clients. Returns them in this order. */
async function oneForEach(proxy: TestProxy): Promise<readonly http2.ClientHttp2Session[]> {
  const all = Array.from({ length: 6 }, () => connect(proxy));
  for (const client of all) assert.is(await get(client), 200);
  return all;
}

test("both workers serve clients, and operators see them as one proxy", async () => {
  const proxy = await start();
  const all = await oneForEach(proxy);
  for (const client of all)
    for (let request = 0; request < 5; request += 1) assert.is(await get(client), 200);
  await until(
    "all requests are counted",
    async () => (await metric(proxy, "requests_total", 'code="200"')) === 36,
  );
  assert.is(await metric(proxy, "downstream_connections", "h2"), 6);
  assert.is(await metric(proxy, "backend_ready"), 2, "one verdict about each backend");
  assert.is(await metric(proxy, "clients"), 2, "one client, in two workers");
  const { requests } = (await read(proxy, "stats")) as { requests: Record<string, number> };
  assert.equal(requests, { "2xx": 36 });
  const ready = proxy.entries.filter((entry) => entry.kind === "backend.changed" && entry.to === "ready");
  assert.is(ready.length, 2, "and one entry about each");
  const { items } = (await read(proxy, "clients")) as { items: { requests: number }[] };
  assert.is(
    items.reduce((sum, row) => sum + row.requests, 0),
    36,
  );
  const text = await (await fetch(`http://${proxy.running.adminAddress}/metrics`)).text();
  assert.match(text, /^process_cpu_seconds_total \d/m);
  assert.match(text, /^process_start_time_seconds \d/m);
});

test("kill -9 of a worker under load: its connections end, the others see nothing, no count falls, and it is back", async () => {
  const proxy = await start();
  const all = await oneForEach(proxy);
  const [victim = 0, other = 0] = pidsOf(proxy);
  const before = proxy.running.workers.map(({ sockets }) => sockets);
  await until("the counts have arrived", async () => (await metric(proxy, "requests_total")) === 6);
  const isOpen = (client: http2.ClientHttp2Session): boolean => !client.closed && !client.destroyed;
  // Every client sends requests without a pause. The last request of a client on the killed worker is not checked.
  const over = new AbortController();
  const loops = all.map(async (client) => {
    const statuses: number[] = [];
    while (!over.signal.aborted && isOpen(client)) statuses.push(await get(client));
    return { isSurvivor: isOpen(client), statuses };
  });
  await pause(300);
  process.kill(victim, "SIGKILL");
  const killedAt = performance.now();
  const newcomers = await Promise.all(Array.from({ length: 20 }, () => get(connect(proxy))));
  // One new connection may have been in transit to the killed worker, which closes it at once.
  assert.ok(
    newcomers.filter((status) => status === 200).length >= 19,
    `served meanwhile: ${newcomers.join()}`,
  );
  await until("another worker serves", () => {
    const [first] = proxy.running.workers;
    return first?.pid !== victim && first?.state === "serving";
  });
  process.stdout.write(
    `figure: another worker serves after ${Math.round(performance.now() - killedAt)} ms\n`,
  );
  over.abort();
  const survivors = (await Promise.all(loops)).filter(({ isSurvivor }) => isSurvivor);
  assert.is(survivors.length, before[1]);
  for (const { statuses } of survivors) assert.equal(new Set(statuses), new Set([200]));
  assert.is(pidsOf(proxy)[1], other);
  await pause(1500);
  const served = survivors.reduce((sum, { statuses }) => sum + statuses.length, 0) + newcomers.length - 1 + 6;
  assert.ok((await metric(proxy, "requests_total")) >= served, "no count was lost");
  assert.is(proxy.entries.filter((entry) => entry.kind === "worker.lost").length, 1);
  assert.is(await metric(proxy, "worker_losses_total"), 1);
  assert.is(await metric(proxy, "workers", "serving"), 2);
  assert.not(proxy.entries.some((entry) => entry.kind === "backend.changed" && entry.to === "suspect"));
});

test("a worker that hangs gets no more than eight sockets, is killed after five seconds, and replaced", async () => {
  const proxy = await start();
  await oneForEach(proxy);
  const [victim = 0] = pidsOf(proxy);
  process.kill(victim, "SIGSTOP");
  const stoppedAt = performance.now();
  const answers = Array.from({ length: 30 }, () => get(connect(proxy)));
  let answered = 0;
  for (const one of answers) void one.then(() => (answered += 1));
  await until("all but eight are served", () => answered >= 22, 4000);
  await until("it is killed", () => pidsOf(proxy)[0] !== victim, 15_000);
  assert.ok(performance.now() - stoppedAt > 4500);
  await until("clients that waited for it are served by others", () => answered >= 28, 5000);
  assert.ok(
    proxy.entries.some((entry) => entry.kind === "worker.lost" && entry.reason === "it does not answer"),
  );
});

test("a backend that dies is judged once, and no worker's client notices", async () => {
  const proxy = await start();
  const all = await oneForEach(proxy);
  proxy.backends[0]?.stop();
  const end = performance.now() + 3000;
  while (performance.now() < end)
    assert.equal(new Set(await Promise.all(all.map((client) => get(client)))), new Set([200]));
  const dead = proxy.entries.filter((entry) => entry.kind === "backend.changed" && entry.to === "dead");
  assert.is(dead.length, 1);
  const { items } = (await read(proxy, "backends")) as {
    items: { name: string; state: string; upstreamConnections: { open: number }[] }[];
  };
  assert.equal(
    items.map(({ state }) => state),
    ["dead", "ready"],
  );
});

test("a drained backend gets no requests of any worker, and a reload reaches all workers", async () => {
  const proxy = await start({ isFollowing: true });
  const all = await oneForEach(proxy);
  await fetch(`http://${proxy.running.apiAddress}/api/v1/backends/a/drain`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-watchkeeper-operator": "test" },
    body: "{}",
  });
  await until("both know", async () => {
    const { items } = (await read(proxy, "backends")) as { items: { state: string }[] };
    return items[0]?.state === "draining";
  });
  // The counts that workers report are up to a second old.
  await pause(1500);
  const before = await metric(proxy, "requests_total", 'backend="a"');
  for (const client of all) assert.is(await get(client), 200);
  await pause(1500);
  assert.is(await metric(proxy, "requests_total", 'backend="a"'), before);
  const file = join(proxy.directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8");
  writeFileSync(
    file,
    text.replace(
      "    tls: {caFile",
      "    limits: [{name: none, verbs: [get], rate: 1/h, burst: 1}]\n    tls: {caFile",
    ),
  );
  await until("it is loaded", () => proxy.entries.some(({ kind }) => kind === "config.reloaded"));
  const statuses = (
    await Promise.all(all.flatMap((client) => [get(client), get(client), get(client)]))
  ).filter((status) => status === 429);
  assert.ok(statuses.length >= 12, `${statuses.length} of 18 were refused`);
  assert.ok(proxy.running.workers.every(({ state }) => state === "serving"));
});

test("a listener that a reload adds serves its first client, and one that a reload renames has no gap", async () => {
  const proxy = await start({ isFollowing: true });
  const file = join(proxy.directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8");
  const port = await freePort();
  for (const [at, name] of ["more", "renamed"].entries()) {
    const line = `  - {name: ${name}, address: "127.0.0.1:${port}"}\nclusters:`;
    writeFileSync(file, text.replace("clusters:", line));
    // Connects again and again. The port is closed before the first reload, and for a moment during the second one.
    const reset: string[] = [];
    await until(`${name} serves`, async () => {
      const outcome = await askAnew(port);
      if (outcome !== "200" && outcome !== "ECONNREFUSED") reset.push(outcome);
      const reloads = proxy.entries.filter(({ kind }) => kind === "config.reloaded").length;
      return reloads > at && outcome === "200";
    });
    assert.equal(reset, []);
  }
});

test("a reload that a worker cannot apply is refused as a whole, and no client of any worker loses its connection", async () => {
  const proxy = await start({ isFollowing: true });
  const all = await oneForEach(proxy);
  const [before, file] = [pidsOf(proxy), join(proxy.directory, "watchkeeper.yaml")];
  const text = readFileSync(file, "utf8");
  // Only this process has the descriptor, so no worker can read the certificate at this path.
  const folder = openSync(proxy.directory, "r");
  const port = await freePort();
  const more = (certFile: string): string =>
    `  - {name: more, address: "127.0.0.1:${port}", tls: {certFile: ${certFile}, keyFile: tls.key}}\nclusters:`;
  writeFileSync(file, text.replace("clusters:", more(`/proc/self/fd/${folder}/tls.crt`)));
  const refusal = (): string =>
    proxy.entries.flatMap((one) => (one.kind === "config.refused" ? one.problems : [])).join();
  await until("it is refused", () => refusal() !== "");
  assert.match(refusal(), /^worker \d keeps its configuration: .*tls\.crt/);
  await pause(1500);
  assert.equal(pidsOf(proxy), before);
  for (const client of all) assert.is(await get(client), 200);
  assert.is(await askAnew(port), "ECONNREFUSED", "the parent keeps its configuration, too");
  assert.is(await get(connect(proxy)), 200);
  writeFileSync(file, text.replace("clusters:", more("tls.crt")));
  await until("the next one is taken", () => proxy.entries.some(({ kind }) => kind === "config.reloaded"));
  assert.is(await get(connect({ ...proxy, url: `https://localhost:${port}` })), 200);
  assert.equal(pidsOf(proxy), before);
  closeSync(folder);
});

test("kill -9 of the parent: its workers drain, so clients are told to connect elsewhere, and end", async () => {
  const backends = await start();
  const port = await freePort();
  const text = readFileSync(join(backends.directory, "watchkeeper.yaml"), "utf8");
  const file = join(backends.directory, "parent.yaml");
  writeFileSync(file, text.replace('address: "127.0.0.1:0", tls', `address: "127.0.0.1:${port}", tls`));
  const parent = spawn(process.execPath, ["bin/watchkeeper.js", "run", "--config", file, "--workers", "2"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let log = "";
  parent.stdout.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  await until("both workers serve", () => log.split("worker.ready").length === 3);
  const workers = [...log.matchAll(/worker\.ready.*?"pid":(\d+)/g)].map((match) => Number(match[1]));
  assert.is(workers.length, 2, log);
  const client = http2.connect(`https://localhost:${port}`, { ca: backends.ca });
  clients.push(client);
  client.on("error", () => {});
  assert.is(await get(client), 200);
  const told = new Promise((resolve) => client.once("goaway", resolve));
  parent.kill("SIGKILL");
  await within(5000, "the GOAWAY", told);
  await until("no worker is left", () => workers.every((pid) => !existsSync(`/proc/${pid}`)), 10_000);
});

test("a stop drains all workers and leaves no process", async () => {
  const proxy = await start();
  await oneForEach(proxy);
  const pids = pidsOf(proxy);
  proxies.splice(0);
  await proxy.stop();
  await until("no process is left", () => pids.every((pid) => !existsSync(`/proc/${pid}`)), 5000);
});

test.run();
