/**
 * Faults of this machine under a running proxy: its wall clock jumps, and it has no file descriptors left despite the
 * limit of sockets. Needs cc and prlimit (util-linux).
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene } from "../support/attack.ts";
import { headers } from "../support/h2-frames.ts";
import type { RawH2 } from "../support/raw-h2.ts";

const test = suite("own-faults");

function has(tool: string): boolean {
  if (spawnSync(tool, ["--version"]).status === 0) return true;
  process.stdout.write(`skip: no ${tool} on this machine\n`);
  return false;
}

const scenes: Scene[] = [];
async function open(options: Parameters<typeof Scene.open>[0]): Promise<Scene> {
  const scene = await Scene.open(options);
  scenes.push(scene);
  return scene;
}
test.after.each(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-own-faults-"));
test.after(() => rmSync(directory, { recursive: true }));

/**
 * Returns the lowest unused descriptor. The limit of the process is set to it, so that no further descriptor can be
 * opened.
 */
function lowestFree(pid: number): number {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  for (let fd = 0; ; fd += 1) if (!used.has(fd)) return fd;
}

async function isServed(client: RawH2, id: number): Promise<void> {
  client.send(headers(id).get("/api"));
  await client.expect(new RegExp(`^HEADERS ${id} :status=200`));
}

test("the wall clock jumps an hour ahead, and two back: no client is sent away, no upstream connection ends, no deadline fires", async () => {
  if (!has("cc")) return;
  const library = join(directory, "wall-clock.so");
  const offsetFile = join(directory, "offset");
  const jump = (seconds: number): void => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    writeFileSync(offsetFile, bytes, { flag: "r+" });
  };
  writeFileSync(offsetFile, Buffer.alloc(8));
  const source = "test/processes/own-faults/wall-clock.c";
  execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  const scene = await open({ env: { LD_PRELOAD: library, OFFSET_FILE: offsetFile } });
  const idle = await scene.attacker();
  const asking = await scene.attacker();
  await isServed(asking, 1);
  const before = await scene.proxy.state();
  for (const [at, seconds] of [3600, -7200].entries()) {
    jump(seconds);
    await pause(2500);
    const state = await scene.proxy.state();
    assert.ok(Math.abs(state.wallMs - Date.now() - seconds * 1000) < 5000, "its clock has jumped");
    await isServed(asking, 2 * at + 3);
    await isServed(await scene.attacker(), 1);
    assert.equal(state.connectionsClosed, before.connectionsClosed);
    assert.equal(state.failures, before.failures);
  }
  assert.is(idle.isClosed || idle.count(/^GOAWAY/) > 0, false, "an idle client stays");
  await scene.settled({ isCrowd: true });
});

test("no descriptor is left in spite of the bound: connected clients are served, no backend is charged, and it comes back", async () => {
  if (!has("prlimit")) return;
  const scene = await open({ openFiles: 1000 });
  const { pid } = scene.proxy;
  const client = await scene.attacker();
  await isServed(client, 1);
  const limit = (most: number): void =>
    void execFileSync("prlimit", ["--pid", String(pid), `--nofile=${most}:1000`]);
  const before = await scene.proxy.state();
  limit(lowestFree(pid));
  const strangers = await Promise.allSettled(Array.from({ length: 20 }, () => scene.attacker()));
  await pause(4000);
  const during = await scene.proxy.state();
  const turnedAway = strangers.filter(({ status }) => status === "rejected").length;
  process.stdout.write(
    `\nfigure: ${turnedAway} of 20 turned away; ${Math.round(during.cpuMs - before.cpuMs)} ms of CPU in 4 s without descriptors\n`,
  );
  assert.ok(turnedAway > 0, "there was nothing left");
  assert.ok(during.cpuMs - before.cpuMs < 3000, "it does not spin");
  await isServed(client, 3);
  limit(1000);
  await scene.ready("target");
  assert.equal(during.faults, []);
  const metrics = await scene.metrics();
  assert.not.match(metrics, /state_transitions_total\{backend="target",from="ready"/);
  const failed = /probes_total\{backend="target",result="failed"\} (\d+)/.exec(metrics)?.[1];
  assert.is(failed, "0", "probes that failed");
  await isServed(await scene.attacker(), 1);
  await scene.settled({ isCrowd: true });
});

test.run();
