/**
 * Many idle clients and many attackers at the same time. Health requests must be answered throughout, no idle client
 * may lose its session, and afterwards all figures must return to their values. IDLE and ATTACKERS set the numbers;
 * `npm run test:crowd` uses 5,000 and 1,000.
 */
import { getPriority, setPriority } from "node:os";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene } from "../../support/attack.ts";
import { figure } from "../../support/figure.ts";
import { type Frame, headers, priority, raw, reset, settings } from "../../support/h2-frames.ts";
import { HealthProber } from "../../support/health-prober.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/crowd");

const idleCount = Number(process.env["IDLE"] ?? 300);
const attackerCount = Number(process.env["ATTACKERS"] ?? 100);
/**
 * The longest time in ms that a health response may take, without the time spent waiting for a CPU. `npm run
 * test:crowd` uses 100. The default is higher, because on a busy machine the waits of the proxy's helper threads and of
 * the prober cannot be subtracted.
 */
const mostMs = Number(process.env["HEALTH_MS"] ?? 500);
/**
 * The number of sockets that are opened at the same time. The server side runs on this machine too, and must accept
 * them.
 */
const atOnce = 50;

let scene: Scene;
test.before(async () => {
  scene = await Scene.open({ openFiles: 3 * (idleCount + attackerCount) + 1000 });
  // Lowers the priority of this process, so that the proxy runs first. In production clients run on other machines.
  setPriority(Math.min(19, getPriority() + 10));
});
test.after(() => scene.close());

const ids = (count: number): number[] => Array.from({ length: count }, (_, at) => 2 * at + 1);

const kinds: readonly ((client: RawH2) => void)[] = [
  (client) =>
    client.send(...ids(500).flatMap((id): Frame[] => [headers(id).get("/hang"), reset(id, "CANCEL")])),
  (client) => client.send(...Array.from({ length: 5000 }, () => settings())),
  (client) => client.send(...Array.from({ length: 5000 }, (_, at) => priority(2 * at + 1001, 0))),
  (client) =>
    client.send(
      raw(
        1,
        5,
        1,
        Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 1, 0x61]), Buffer.alloc(10_000, 0x90)]),
      ),
    ),
  (client) => client.send(...ids(100).map((id) => headers(id).get("/big/1000000"))),
  (client) => client.sendBytes(Buffer.from("GET / HTTP/1.1\r\n\r\n")),
  (client) => client.send(raw(1, 1, 1, Buffer.from([0x82]))),
];

/** Opens this many clients, a few at a time. */
async function crowd(count: number): Promise<RawH2[]> {
  const clients: RawH2[] = [];
  while (clients.length < count)
    clients.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(atOnce, count - clients.length) }, () => scene.attacker()),
      )),
    );
  return clients;
}

test("A24, A51: idle clients and attackers by the thousand: health answers, the idle stay, and all figures come back", async () => {
  const before = await scene.proxy.state();
  const prober = new HealthProber(`http://127.0.0.1:${scene.proxy.place.adminPort}/livez`, scene.proxy.pid);
  const beganAt = performance.now();
  const idle = await crowd(idleCount);
  const shakenMs = performance.now() - beganAt;
  for (let left = attackerCount; left > 0; left -= atOnce) {
    const some = await crowd(Math.min(atOnce, left));
    for (const [at, client] of some.entries()) kinds[at % kinds.length]?.(client);
    await pause(20);
  }
  await pause(1000);
  const { stalledMs } = await scene.proxy.state();
  const { asked, failed, took, own } = await prober.times();
  const at = (share: number, sorted: readonly number[]): number =>
    Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  figure(
    `${idleCount} idle clients came in ${Math.round(shakenMs)} ms, ${attackerCount} attackers after them; health answered ${asked} times, ${failed} failed; p50 ${at(0.5, took)} ms, p99 ${at(0.99, took)} ms, at most ${at(1, took)} ms, and without the wait for a processor p50 ${at(0.5, own)} ms, p99 ${at(0.99, own)} ms, at most ${at(1, own)} ms; the loop was busy for ${Math.round(stalledMs)} ms at most`,
  );
  assert.is(failed, 0);
  assert.is(idle.filter((client) => client.isClosed || client.count(/^GOAWAY/) > 0).length, 0);
  assert.ok(at(1, own) <= mostMs, `health took ${at(1, own)} ms`);
  await scene.settledLive(before.heapBytes);
  const after = await scene.settled({ isCrowd: true });
  figure(
    `live before ${before.heapBytes >> 20} MiB, after ${after.heapBytes >> 20} MiB; exchanges ${after.exchanges}`,
  );
  const open = /downstream_connections\{alpn="h2"\} (\d+)/.exec(await scene.metrics())?.[1];
  assert.ok(Number(open) <= 2, `${open} sessions stay`);
});

test.run();
