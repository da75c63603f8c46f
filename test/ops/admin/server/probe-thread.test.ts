/**
 * Tests the port of metrics and probes with the real thread: while the main event loop is blocked, under attack, and
 * after the thread has died.
 */
import { get } from "node:http";
import { get as getTls } from "node:https";
import { connect } from "node:net";
import type { TLSSocket } from "node:tls";
import { Worker } from "node:worker_threads";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Clock, wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import type { AccessRequest, Admitted } from "../../../../src/ops/admin/authorization/authorization.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { jsonReply, type Reply } from "../../../../src/ops/admin/http/reply.ts";
import { Answers } from "../../../../src/ops/admin/server/answers.ts";
import { ProbeThread } from "../../../../src/ops/admin/server/probe-thread.ts";
import type { Readiness } from "../../../../src/ops/admin/server/probes.ts";
import type { ApiTls } from "../../../../src/ops/admin/server/secure-server.ts";
import { serverTlsOptions } from "../../../../src/proxy/tls/server-context.ts";
import { checkPair, type ServingPair } from "../../../../src/proxy/tls/serving-pair.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/probe-thread");

const opened: ProbeThread[] = [];
test.after.each(async () => {
  for (const lookout of opened.splice(0)) await within(20_000, "the thread's end", lookout.stop());
});

type Change = {
  readonly port?: number;
  readonly ready?: () => readonly Readiness[];
  readonly metrics?: () => Promise<string>;
  readonly thread?: string | URL;
  readonly contentType?: string;
  readonly tls?: ApiTls;
  readonly admit?: (request: AccessRequest) => Promise<Admitted | Reply>;
};

async function start(change: Change = {}) {
  const { port = 0, contentType = "text/x", ...others } = change;
  let retries = 0;
  const after: Clock["after"] = (ms, run) => {
    if (ms === adminLimits.portRetryMs) retries += 1;
    return wallClock.after(ms, run);
  };
  const clock = { ...wallClock, after };
  const journal = new Journal(clock);
  const heard: Entry[] = [];
  journal.subscribe((entry) => heard.push(entry));
  const live = (): Readiness[] => [{ name: "ping", ok: true }];
  const metrics = (): Promise<string> => Promise.resolve("a 1\n");
  const answers = new Answers({ journal, clock, live, ready: () => [], metrics, ...others });
  const parts = { host: "127.0.0.1", port, inherited: undefined, journal, clock, answers, contentType };
  const lookout = await ProbeThread.start({ ...parts, ...others });
  if (lookout instanceof Failure) return lookout;
  opened.push(lookout);
  return { lookout, journal, heard, retries: () => retries, port: Number(lookout.address.split(":").at(-1)) };
}

async function started(change: Change = {}) {
  const outcome = await start(change);
  if (outcome instanceof Failure) throw new Error(outcome.message);
  return outcome;
}

const mortal = new URL("../../../support/mortal-lookout.ts", import.meta.url);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls `isSo` every 50 ms, and fails after ten seconds. */
async function until(isSo: () => boolean): Promise<void> {
  for (let left = 200; left > 0 && !isSo(); left -= 1) await pause(50);
  assert.ok(isSo());
}

function ask(port: number, path: string): Promise<{ status: number; text: string }> {
  return within(
    20_000,
    path,
    new Promise((resolve, reject) => {
      get({ port, host: "127.0.0.1", path, agent: false }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => {
          text += piece;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      }).on("error", reject);
    }),
  );
}

test("it says what the proxy's own thread says", async () => {
  let isReady = false;
  const { port, heard, lookout } = await started({ ready: () => [{ name: "backends", ok: isReady }] });
  assert.equal(await ask(port, "/livez?verbose"), {
    status: 200,
    text: "[+]ping ok\n[+]loop ok\nlivez check passed\n",
  });
  assert.is((await ask(port, "/readyz")).status, 500);
  isReady = true;
  assert.is((await ask(port, "/readyz")).status, 200);
  assert.equal(await ask(port, "/metrics"), { status: 200, text: "a 1\n" });
  assert.equal(heard[1], { kind: "listener.opened", listener: "metrics", address: `127.0.0.1:${port}` });
  assert.ok((lookout.descriptor ?? 0) > 2, "a descriptor for a successor");
});

/**
 * The program of a thread that sends six requests one after the other, and reports the status and the duration of each.
 */
const asking = `
  const { workerData, parentPort } = require("node:worker_threads");
  const times = [];
  const next = () => {
    const began = performance.now();
    require("node:http").get({ ...workerData, host: "127.0.0.1", agent: false }, (response) => {
      response.resume().on("end", () => {
        times.push([response.statusCode, performance.now() - began]);
        if (times.length === 6) parentPort.postMessage(times);
        else next();
      });
    });
  };
  parentPort.once("message", next);
  parentPort.postMessage("here");`;

/**
 * Calls `first`, blocks this event loop for a second, and returns what a client in another thread gets meanwhile: the
 * status and the duration of each request.
 */
async function askedWhileBlocked(port: number, path: string, first: () => void): Promise<[number, number][]> {
  const asker = new Worker(asking, { eval: true, workerData: { port, path } });
  await within(20_000, "the asker", new Promise((resolve) => asker.once("message", resolve)));
  const times = new Promise<[number, number][]>((resolve) => asker.once("message", resolve));
  first();
  await pause(0);
  asker.postMessage("go", []);
  for (const end = performance.now() + 1000; performance.now() < end; );
  const told = await within(20_000, "the answers", times);
  await asker.terminate();
  return told;
}

test("a loop that is blocked for a second is reported as well, and no probe waits for it", async () => {
  const { port } = await started();
  const told = await askedWhileBlocked(port, "/livez", () => {});
  assert.equal(
    told.map(([status]) => status),
    [200, 200, 200, 200, 200, 200],
  );
  const slowest = Math.max(...told.map(([, ms]) => ms));
  assert.ok(slowest < 900, `asked for ${Math.round(slowest)} ms beside a loop blocked for 1000`);
});

test("a stop that began just before the loop was blocked is told at once: no new clients here", async () => {
  let isDraining = false;
  const { port, journal } = await started({ ready: () => [{ name: "draining", ok: !isDraining }] });
  assert.is((await ask(port, "/readyz")).status, 200);
  const told = await askedWhileBlocked(port, "/readyz", () => {
    isDraining = true;
    journal.write({ kind: "drain.started" });
  });
  assert.equal(
    told.map(([status]) => status),
    [500, 500, 500, 500, 500, 500],
  );
});

test("a port in use is a Failure that names it", async () => {
  const { port } = await started();
  const second = await start({ port });
  assert.instance(second, Failure);
  if (second instanceof Failure)
    assert.match(second.message, `cannot listen on 127.0.0.1:${port}: already in use`);
});

test("it stops although a socket is open, and its port is free", async () => {
  const { port, lookout } = await started();
  await ask(port, "/livez");
  await within(20_000, "the thread's end", lookout.stop());
  opened.splice(0);
  const again = await start({ port });
  assert.not.instance(again, Failure);
});

test("64 sockets that ask for much and read nothing do not fill its heap", async () => {
  const text = `${"a".repeat(99)}\n`.repeat(5000);
  const { port, heard } = await started({ metrics: () => Promise.resolve(text) });
  const many = "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n";
  const wide = `GET /metrics HTTP/1.1\r\nhost: x\r\na: ${"a".repeat(8000)}\r\n\r\n`;
  const sockets = Array.from({ length: 64 }, (_, at) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {}).pause();
    // Every fourth client sends more requests than the limit permits.
    socket.write(at % 4 === 0 ? many.repeat(2000) : at % 4 === 1 ? many.repeat(4) : wide.repeat(4));
    return socket;
  });
  for (let times = 0; times < 10; times += 1) {
    await pause(100);
    assert.is((await ask(port, "/livez")).status, 200);
  }
  for (const socket of sockets) socket.destroy();
  assert.is((await ask(port, "/metrics")).text.length, text.length);
  assert.is(heard.filter(({ kind }) => kind !== "probe.changed").length, 1);
});

test("a thread whose heap is full dies alone, is told, and another one answers on its port", async () => {
  const { port, heard, lookout } = await started({ thread: mortal });
  assert.is((await ask(port, "/livez")).status, 200);
  await until(() => heard.some(({ kind }) => kind === "internal.error"));
  assert.is(lookout.descriptor, undefined, "a closed descriptor is handed to no successor");
  assert.is(lookout.address, `127.0.0.1:${port}`);
  await until(() => heard.filter(({ kind }) => kind === "listener.opened").length === 2);
  assert.is((await ask(port, "/livez")).status, 200);
  assert.ok((lookout.descriptor ?? 0) > 2);
  const faults = heard.flatMap((entry) => (entry.kind === "internal.error" ? [entry.message] : []));
  assert.is(faults.length, 1);
  assert.match(faults[0] ?? "", "Metrics port: Worker terminated due to reaching memory limit");
});

test("no thread can be had any more: that is told once, and it is tried once a second, until it stops", async () => {
  const { heard, lookout, retries } = await started({ thread: mortal, contentType: "barren" });
  await until(() => heard.some(({ kind }) => kind === "listener.lost"));
  const begun = retries();
  await pause(3500);
  assert.ok(retries() > begun && retries() <= begun + 3, `${retries() - begun} tries in 3.5 s`);
  await within(20_000, "its end", lookout.stop());
  const left = retries();
  await pause(1500);
  assert.is(retries(), left);
  const lost = heard.flatMap((entry) => (entry.kind === "listener.lost" ? [entry.reason] : []));
  assert.equal(lost, ["barren"]);
});

test("a thread that the system does not give is a Failure, as is one that ends before it listens", async () => {
  const none = await start({ thread: "no path" });
  assert.instance(none, Failure);
  const barren = await start({ port: 1, thread: mortal, contentType: "barren" });
  assert.instance(barren, Failure);
  if (barren instanceof Failure) assert.is(barren.message, "barren");
});

/** Sends a GET over TLS. Returns the status, the body, and the fingerprint of the server's certificate. */
function askTls(port: number, path: string, token?: string): Promise<[number, string, string]> {
  const { promise, resolve, reject } = Promise.withResolvers<[number, string, string]>();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const options = { host: "127.0.0.1", port, path, headers, rejectUnauthorized: false, agent: false };
  const asked = getTls(options, (response) => {
    const { fingerprint256 } = (response.socket as TLSSocket).getPeerCertificate();
    let body = "";
    response.on("data", (chunk: Buffer) => (body += chunk.toString()));
    response.on("end", () => resolve([response.statusCode ?? 0, body, fingerprint256]));
  });
  asked.on("error", reject);
  return promise;
}

async function pairOf(): Promise<ServingPair> {
  const { authority } = await testPki();
  const { certificate, key } = authority.issue({ name: "metrics", hosts: ["localhost"] });
  const pair = checkPair(certificate, key, wallClock.wall());
  if (pair instanceof Failure) throw new Error(pair.message);
  return pair;
}

test("with TLS and authorization, metrics need a token that the loop's side admits, and probes need none", async () => {
  const asked: AccessRequest[] = [];
  const certificate = { current: { pair: await pairOf() } };
  const { port } = await started({
    tls: { certificate, options: serverTlsOptions() },
    admit: (request) => {
      asked.push(request);
      if (request.authorization === "Bearer broken") return Promise.reject(new Error("broken"));
      if (request.authorization !== "Bearer good")
        return Promise.resolve(jsonReply(401, { message: "who?" }));
      return Promise.resolve({ username: "prometheus" });
    },
  });
  for (const path of ["/livez", "/readyz", "/healthz"]) assert.is((await askTls(port, path))[0], 200, path);
  assert.equal(asked, []);
  assert.is((await askTls(port, "/metrics"))[0], 401);
  assert.is((await askTls(port, "/metrics", "bad"))[0], 401);
  assert.is((await askTls(port, "/metrics", "broken"))[0], 500);
  assert.equal((await askTls(port, "/metrics?a=b", "good")).slice(0, 2), [200, "a 1\n"]);
  assert.equal(asked.at(-1), {
    verb: "get",
    path: "/metrics",
    authorization: "Bearer good",
    address: "127.0.0.1",
  });
  const plain = await fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined);
  assert.is(plain, undefined, "no plain HTTP");
});

test("a renewed certificate is in use for new connections", async () => {
  const certificate = { current: { pair: await pairOf() } };
  const { port, journal } = await started({ tls: { certificate, options: serverTlsOptions() } });
  assert.is((await askTls(port, "/livez"))[2], certificate.current.pair.fingerprint);
  certificate.current = { pair: await pairOf() };
  journal.write({ kind: "certificate.loaded", name: "metrics", notAfter: "" });
  const deadline = performance.now() + 20_000;
  while ((await askTls(port, "/livez"))[2] !== certificate.current.pair.fingerprint)
    assert.ok(performance.now() < deadline, "the old certificate stays in use");
});

test.run();
