/**
 * The proxy's process is stopped for 30 s, as when its machine is paused. Every connection that survives the pause must
 * continue.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Scene } from "../../support/attack.ts";
import { headers } from "../../support/h2-frames.ts";
import { within } from "../../support/within.ts";

const test = suite("long/standstill");

const pauseMs = 30_000;
const watch = "/api/v1/pods?watch=1&resourceVersion=7";
const request = ["POST /exec HTTP/1.1", "Host: api", "Connection: Upgrade", "Upgrade: SPDY/3.1", "", ""];

const scenes: Scene[] = [];
test.after.each(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

/** A tunnel whose other end echoes. */
class Exec {
  readonly #socket: TLSSocket;
  #got = "";
  isOver = false;

  constructor({ port, ca }: { readonly port: number; readonly ca: string }) {
    this.#socket = connect({
      port,
      host: "127.0.0.1",
      ca,
      servername: "localhost",
      ALPNProtocols: ["http/1.1"],
    });
    this.#socket.on("data", (chunk: Buffer) => {
      this.#got += chunk.toString("latin1");
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.isOver = true;
    });
    this.#socket.write(request.join("\r\n"));
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  async expect(text: string): Promise<void> {
    const look = async (): Promise<void> => {
      while (!this.#got.includes(text) && !this.isOver) await sleep(20);
    };
    await within(10_000, text, look());
    assert.ok(this.#got.includes(text), `${text} in ${this.#got.slice(-300)}`);
  }

  close(): void {
    this.#socket.destroy();
  }
}

test("a pause of 30 s: no watch, exec, session, upstream connection or backend is judged by that time", async () => {
  const scene = await Scene.open({});
  scenes.push(scene);
  const { pid, place } = scene.proxy;
  const client = await scene.attacker();
  client.send(headers(1).get("/api"));
  await client.expect(/^HEADERS 1 :status=200/);
  client.send(headers(3).get(watch));
  await client.expect(/^HEADERS 3 :status=200/);
  const idle = await scene.attacker();
  const exec = new Exec(place);
  await exec.expect("101 Switching");
  exec.send("before ");
  await exec.expect("before ");
  await sleep(2000);
  const before = await scene.proxy.state();
  const metrics = await scene.metrics();
  process.kill(pid, "SIGSTOP");
  exec.send("during ");
  client.send(headers(5).get("/api"));
  await sleep(pauseMs);
  process.kill(pid, "SIGCONT");
  await exec.expect("during ");
  await client.expect(/^HEADERS 5 :status=200/);
  const events = client.count(/^DATA 3 /);
  await sleep(3000);
  assert.ok(client.count(/^DATA 3 /) > events, "its watch goes on");
  assert.is(client.count(/^(GOAWAY|RST_STREAM)/), 0);
  assert.is(client.isClosed || idle.isClosed || idle.count(/^GOAWAY/) > 0 || exec.isOver, false);
  exec.send("after ");
  await exec.expect("after ");
  const after = await scene.proxy.state();
  assert.equal([after.connectionsClosed, after.failures], [before.connectionsClosed, before.failures]);
  const verdicts = (text: string): string[] =>
    text.split("\n").filter((line) => line.includes("state_transitions_total{"));
  assert.equal(verdicts(await scene.metrics()), verdicts(metrics));
  exec.close();
});

test.run();
