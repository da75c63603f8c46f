/** The port of metrics and probes beside a loop that is blocked in earnest, and after its thread has died. */
import { get } from "node:http";
import { Worker } from "node:worker_threads";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Answers } from "../../src/admin/answers.ts";
import { Lookout } from "../../src/admin/lookout.ts";
import type { Readiness } from "../../src/admin/probes.ts";
import { wallClock } from "../../src/clock.ts";
import { Failure } from "../../src/failure.ts";
import { type Entry, Journal } from "../../src/journal.ts";
import { within } from "../support/within.ts";

const test = suite("admin/lookout");

const opened: Lookout[] = [];
test.after.each(async () => {
  for (const lookout of opened.splice(0)) await within(20_000, "the thread's end", lookout.stop());
});

async function start(port = 0, ready: () => readonly Readiness[] = () => [], thread?: URL) {
  const journal = new Journal(wallClock);
  const heard: Entry[] = [];
  journal.subscribe((entry) => heard.push(entry));
  const live = (): Readiness[] => [{ name: "ping", ok: true }];
  const metrics = (): Promise<string> => Promise.resolve("a 1\n");
  const answers = new Answers({ journal, clock: wallClock, live, ready, metrics });
  const where = { host: "127.0.0.1", port, inherited: undefined };
  const parts = { ...where, journal, clock: wallClock, answers, contentType: "text/x" };
  const lookout = await Lookout.start({ ...parts, ...(thread === undefined ? {} : { thread }) });
  if (lookout instanceof Failure) return lookout;
  opened.push(lookout);
  return { lookout, heard, port: Number(lookout.address.split(":").at(-1)) };
}

async function started(ready?: () => readonly Readiness[]) {
  const outcome = await start(0, ready);
  if (outcome instanceof Failure) throw new Error(outcome.message);
  return outcome;
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
  const { port, heard, lookout } = await started(() => [{ name: "backends", ok: isReady }]);
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

test("a loop that is blocked for a second is told as well within a tenth of it", async () => {
  const { port } = await started();
  const asker = new Worker(
    `const { workerData, parentPort } = require("node:worker_threads");
     const times = [];
     const next = () => {
       const began = performance.now();
       require("node:http").get({ port: workerData, host: "127.0.0.1", path: "/livez", agent: false }, (response) => {
         response.resume().on("end", () => {
           times.push([response.statusCode, performance.now() - began]);
           if (times.length === 1) parentPort.postMessage("asking");
           if (times.length === 6) parentPort.postMessage(times);
           else next();
         });
       });
     };
     next();`,
    { eval: true, workerData: port },
  );
  await within(20_000, "the first answer", new Promise((resolve) => asker.once("message", resolve)));
  const times = new Promise<[number, number][]>((resolve) => asker.once("message", resolve));
  for (const until = performance.now() + 1000; performance.now() < until; );
  const told = await within(20_000, "the answers", times);
  assert.equal(
    told.map(([status]) => status),
    [200, 200, 200, 200, 200, 200],
  );
  const slowest = Math.max(...told.map(([, ms]) => ms));
  assert.ok(slowest < 900, `asked for ${Math.round(slowest)} ms beside a loop blocked for 1000`);
  await asker.terminate();
});

test("a port in use is a Failure that names it", async () => {
  const { port } = await started();
  const second = await start(port);
  assert.instance(second, Failure);
  if (second instanceof Failure)
    assert.match(second.message, `cannot listen on 127.0.0.1:${port}: already in use`);
});

test("it stops although a socket is open, and its port is free", async () => {
  const { port, lookout } = await started();
  await ask(port, "/livez");
  await within(20_000, "the thread's end", lookout.stop());
  opened.splice(0);
  const again = await start(port);
  assert.not.instance(again, Failure);
});

test("a thread that dies is told, and another one answers on its port", async () => {
  const mortal = new URL("../support/mortal-lookout.ts", import.meta.url);
  const outcome = await start(0, () => [], mortal);
  if (outcome instanceof Failure) throw new Error(outcome.message);
  const { port, heard } = outcome;
  assert.is((await ask(port, "/livez")).status, 200);
  const isBack = (): boolean => heard.filter(({ kind }) => kind === "listener.opened").length === 2;
  for (let left = 200; left > 0 && !isBack(); left -= 1) await new Promise((go) => setTimeout(go, 50));
  assert.is((await ask(port, "/livez")).status, 200);
  const faults = heard.flatMap((entry) => (entry.kind === "fault.contained" ? [entry.message] : []));
  assert.equal(faults, ["Metrics port: mortal"]);
});

test.run();
