/**
 * Many idle clients and many attackers at once: health answers throughout, nobody idle is sent away, and afterwards all
 * figures are back. IDLE and ATTACKERS say how many; `npm run test:crowd` is 5,000 and 1,000.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene } from "../../support/attack.ts";
import { type Frame, headers, priority, raw, reset, settings } from "../../support/h2-frames.ts";
import type { HealthTimes } from "../../support/health-prober.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/crowd");

const idleCount = Number(process.env["IDLE"] ?? 300);
const attackerCount = Number(process.env["ATTACKERS"] ?? 100);
/** The aim is 100, on a machine whose other cores play the crowd; here it shares them with what it is to serve. */
const mostMs = Number(process.env["HEALTH_MS"] ?? 2000);
/** Of whoever opens sockets at once: their other end has to take them too. */
const atOnce = 50;

let scene: Scene;
test.before(async () => {
  scene = await Scene.open({ openFiles: 3 * (idleCount + attackerCount) + 1000 });
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

/** So many, a few at a time. */
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
  const prober = new Worker(new URL("../../support/health-prober.ts", import.meta.url), {
    workerData: `http://127.0.0.1:${scene.proxy.place.adminPort}/livez`,
  });
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
  prober.postMessage("enough", []);
  const [times] = (await once(prober, "message")) as [HealthTimes];
  const at = (share: number): number =>
    Math.round(times.sorted[Math.floor(share * (times.sorted.length - 1))] ?? 0);
  process.stdout.write(
    `\nfigure: ${idleCount} idle clients came in ${Math.round(shakenMs)} ms, ${attackerCount} attackers after them; health answered ${times.asked} times, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(1)} ms, ${times.failed} failed; the loop was busy for ${Math.round(stalledMs)} ms at most\n`,
  );
  assert.is(times.failed, 0);
  assert.is(idle.filter((client) => client.isClosed || client.count(/^GOAWAY/) > 0).length, 0);
  assert.ok(at(1) < mostMs, `health took ${at(1)} ms`);
  await scene.settledLive(before.heapBytes);
  const after = await scene.settled({ isCrowd: true });
  process.stdout.write(
    `\nfigure: live before ${before.heapBytes >> 20} MiB, after ${after.heapBytes >> 20} MiB; exchanges ${after.exchanges}\n`,
  );
  const open = /downstream_connections\{alpn="h2"\} (\d+)/.exec(await scene.metrics())?.[1];
  assert.ok(Number(open) <= 2, `${open} sessions stay`);
});

test.run();
