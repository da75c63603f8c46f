/**
 * Tests the probe thread by itself: what it asks the main thread, what it answers while the main thread does not
 * respond, and what it does when it cannot listen.
 */
import { Worker } from "node:worker_threads";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type {
  FromThread,
  ProbeThreadOrder,
  ToThread,
} from "../../../../src/ops/admin/server/probe-thread.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/probe-thread-main");

const workers: Worker[] = [];
test.after.each(async () => {
  for (const worker of workers.splice(0)) await worker.terminate();
});

function start(host = "127.0.0.1") {
  const first = { livez: [{ name: "ping", ok: true }], readyz: [] };
  const port = { host, port: 0, inherited: undefined, tls: undefined, isGuarded: false };
  const order: ProbeThreadOrder = { ...port, first, contentType: "text/x" };
  const file = new URL("../../../../src/ops/admin/server/probe-thread-main.ts", import.meta.url);
  const worker = new Worker(file, { workerData: order, execArgv: [] });
  workers.push(worker);
  const heard: FromThread[] = [];
  const waits = new Set<() => void>();
  worker.on("message", (message: FromThread) => {
    heard.push(message);
    for (const look of waits) look();
  });
  const said = <Kind extends FromThread["kind"]>(kind: Kind): Promise<Extract<FromThread, { kind: Kind }>> =>
    within(
      20_000,
      kind,
      new Promise((resolve) => {
        const look = (): void => {
          const found = heard.find((message) => message.kind === kind);
          if (found === undefined) return;
          waits.delete(look);
          resolve(found as Extract<FromThread, { kind: Kind }>);
        };
        waits.add(look);
        look();
      }),
    );
  const tell = (message: ToThread): void => worker.postMessage(message, []);
  return { said, tell, heard };
}

test("it asks, and answers with what it is told", async () => {
  const { said, tell } = start();
  const { address } = await said("opened");
  const answer = fetch(`http://${address}/metrics`);
  const { id, question } = await said("asked");
  assert.is(question, "metrics");
  tell({ kind: "answer", id, answer: "a 1\n" });
  assert.is(await (await answer).text(), "a 1\n");
});

test("without the main thread it answers what it was started with", async () => {
  const { said } = start();
  const { address } = await said("opened");
  const answer = await fetch(`http://${address}/livez`);
  assert.equal([answer.status, await answer.text()], [200, "ok"]);
});

test("a state that it gets unasked is what it answers without the main thread", async () => {
  const { said, tell } = start();
  const { address } = await said("opened");
  tell({ kind: "known", probe: "livez", checks: [{ name: "ping", ok: false }] });
  assert.is((await fetch(`http://${address}/livez`)).status, 500);
});

test("a refusal is an answer of 500, and told to the journal", async () => {
  const { said, tell } = start();
  const { address } = await said("opened");
  const answer = fetch(`http://${address}/metrics`);
  const { id } = await said("asked");
  tell({ kind: "refusal", id, message: "no snapshot" });
  assert.is((await answer).status, 500);
});

test("an address that this machine does not have is reported", async () => {
  const { message } = await start("192.0.2.1").said("failed");
  assert.match(message, "cannot listen on 192.0.2.1:0");
});

test.run();
