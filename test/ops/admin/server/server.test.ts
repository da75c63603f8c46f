import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { Answers } from "../../../../src/ops/admin/server/answers.ts";
import type { Readiness } from "../../../../src/ops/admin/server/probes.ts";
import { type Admin, startAdmin, startApi } from "../../../../src/ops/admin/server/server.ts";
import { manualClock } from "../../../support/clock.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/server");

const opened: Admin[] = [];
const sockets: Socket[] = [];
test.after.each(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const admin of opened.splice(0)) await within(20_000, "the admin port to stop", admin.stop());
});

type Started = { readonly port: number; readonly heard: Entry[] };

type Change = {
  readonly ready?: () => readonly Readiness[];
  readonly metrics?: () => Promise<string>;
};

async function start(change: Change = {}): Promise<Started> {
  const clock = manualClock();
  const journal = new Journal(clock);
  const heard: Entry[] = [];
  journal.subscribe((entry) => heard.push(entry));
  const admin = await startAdmin({
    host: "127.0.0.1",
    port: 0,
    journal,
    asker: new Answers({
      journal,
      clock,
      live: () => [{ name: "ping", ok: true }],
      ready: () => [{ name: "backends", ok: false, reason: "0 of 2 ready" }],
      metrics: () => Promise.resolve("a 1\n"),
      ...change,
    }),
    contentType: "text/plain; version=0.0.4",
  });
  if (admin instanceof Failure) throw new Error(admin.message);
  opened.push(admin);
  return { port: Number(admin.address.split(":").at(-1)), heard };
}

type Got = {
  readonly status: number;
  readonly text: string;
  readonly headers: NodeJS.Dict<string | string[]>;
};

function ask(port: number, path: string, method = "GET", headers = {}): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>();
  const sent = request({ port, host: "127.0.0.1", path, method, headers, agent: false }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
  });
  sent.on("error", reject).end();
  return within(20_000, `${method} ${path}`, promise);
}

/** Sends raw bytes. Resolves to all that comes back until the connection ends. */
function raw(port: number, text: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1", () => socket.write(text));
  sockets.push(socket);
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  socket.on("error", () => resolve(answer)).on("close", () => resolve(answer));
  return promise;
}

test("livez is good while no backend is, and healthz says the same", async () => {
  const { port } = await start();
  for (const path of ["/livez", "/healthz"]) assert.is((await ask(port, path)).text, "ok");
  const ready = await ask(port, "/readyz?verbose");
  assert.is(ready.status, 500);
  assert.is(ready.text, "[-]backends failed: reason withheld\nreadyz check failed\n");
  assert.is(ready.headers["x-content-type-options"], "nosniff");
  assert.is(ready.headers["content-type"], "text/plain; charset=utf-8");
});

test("metrics come with their type, and HEAD without a body", async () => {
  const { port } = await start();
  const got = await ask(port, "/metrics");
  assert.is(got.text, "a 1\n");
  assert.is(got.headers["content-type"], "text/plain; version=0.0.4");
  const head = await ask(port, "/metrics", "HEAD");
  assert.is(head.status, 200);
  assert.is(head.text, "");
  assert.is(head.headers["content-length"], "4");
});

test("a scrape gets OpenMetrics with exemplars if it asks for it, and otherwise text without them", async () => {
  const text = 'a_bucket{le="1"} 1 # {audit_id="x"} 0.5 1800000000.000\n';
  const { port } = await start({ metrics: () => Promise.resolve(text) });
  const plain = await ask(port, "/metrics");
  assert.is(plain.text, 'a_bucket{le="1"} 1\n');
  assert.match(String(plain.headers["content-type"]), "text/plain; version=0.0.4");
  const open = await ask(port, "/metrics", "GET", {
    accept: "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
  });
  assert.is(open.text, 'a_bucket{le="1.0"} 1 # {audit_id="x"} 0.5 1800000000.000\n# EOF\n');
  assert.match(String(open.headers["content-type"]), "application/openmetrics-text; version=1.0.0");
});

test("a scrape that fails is answered and told, and the port lives on", async () => {
  const metrics = (): Promise<string> => Promise.reject(new Error("no snapshot"));
  const { port, heard } = await start({ metrics });
  assert.is((await ask(port, "/metrics")).status, 500);
  assert.is((await ask(port, "/livez")).status, 200);
  const [fault] = heard.filter(({ kind }) => kind === "internal.error");
  assert.match(JSON.stringify(fault), "no snapshot");
});

test("on loopback, a request for another host gets 421: a web page whose name was rebound reads no metrics (A56)", async () => {
  const { port } = await start();
  for (const path of ["/metrics", "/livez", "/readyz"]) {
    assert.is((await ask(port, path, "GET", { host: "evil.example" })).status, 421, path);
    for (const host of [`127.0.0.1:${port}`, "localhost", `[::1]:${port}`])
      assert.is.not((await ask(port, path, "GET", { host })).status, 421, `${path} ${host}`);
  }
  assert.match(await raw(port, "GET /livez HTTP/1.0\r\n\r\n"), " 200 ", "a check of a load balancer");
});

test("a request to the API for another host gets 421, and one with two hosts gets 400 (A56)", async () => {
  const api = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal: new Journal(manualClock()),
    routes: () => () => ({ status: 200, type: "text/plain", text: "y" }),
  });
  if (api instanceof Failure) throw new Error(api.message);
  opened.push(api);
  const port = Number(api.address.split(":").at(-1));
  const hosts = [[api.address], ["localhost"], ["evil.example"], [api.address, "evil.example"]];
  const answers = hosts.map(async (names) => {
    const fields = names.map((name) => `host: ${name}\r\n`).join("");
    return (await raw(port, `GET /x HTTP/1.1\r\n${fields}connection: close\r\n\r\n`)).slice(9, 12);
  });
  assert.equal(await Promise.all(answers), ["200", "200", "421", "400"]);
});

test("other paths and methods are refused, by a fixed table", async () => {
  const { port } = await start();
  for (const path of [
    "/",
    "/metrics/",
    "/readyz/backends",
    "/%6civez",
    "//livez",
    "/livez/../metrics",
    "/__proto__",
  ])
    assert.is((await ask(port, path)).status, 404, path);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"]) {
    const { status, headers } = await ask(port, "/livez", method);
    assert.equal([status, headers["allow"]], [405, "GET, HEAD"], method);
  }
});

test("a head beyond the limit, and anything that is no HTTP, is refused and the socket ends", async () => {
  const { port } = await start();
  const big = `GET /livez HTTP/1.1\r\nhost: localhost\r\na: ${"x".repeat(adminLimits.adminHeaderBytes)}\r\n\r\n`;
  assert.match(await within(20_000, "431", raw(port, big)), /^HTTP\/1.1 431/);
  assert.match(await within(20_000, "400", raw(port, "\x16\x03\x01 hello\r\n\r\n")), /^HTTP\/1.1 400/);
  assert.is((await ask(port, "/livez")).status, 200);
});

test("a port in use is a Failure that names it", async () => {
  const { port } = await start();
  const second = await startAdmin({
    host: "127.0.0.1",
    port,
    journal: new Journal(manualClock()),
    asker: { checks: () => Promise.resolve([]), scrape: () => Promise.resolve("") },
    contentType: "",
  });
  assert.instance(second, Failure);
  if (second instanceof Failure)
    assert.match(second.message, `listener metrics: cannot listen on 127.0.0.1:${port}: already in use`);
});

test("it says where it listens, and stops although a socket is open", async () => {
  const { port, heard } = await start();
  assert.equal(heard[0], { kind: "listener.opened", listener: "metrics", address: `127.0.0.1:${port}` });
  const kept = raw(port, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await ask(port, "/livez");
  await within(20_000, "the port to stop", opened[0]?.stop() ?? Promise.resolve());
  opened.splice(0);
  assert.match(await within(20_000, "the open socket to end", kept), /^HTTP\/1.1 200/);
});

test.run();
