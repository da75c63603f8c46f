/**
 * The memory of an idle process, started from a bundle as in the npm package. It matters because every pod or node pays
 * for it permanently.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bundle } from "../../deploy/release/bundle.ts";
import { figure } from "../support/figure.ts";
import { freePort } from "../support/free-port.ts";
import { testPki } from "../support/pki.ts";
import { Target } from "../support/target.ts";
import { within } from "../support/within.ts";

const test = suite("processes/idle-memory");

/** RSS in MiB. Measured: 79 to 84. Without the bundle and without `probeThread: false` it was 127. */
const mostMiB = 100;
/** Time in ms for startup memory to be returned to the kernel, and for all connections to backends to open. */
const settledMs = 4_000;

const root = mkdtempSync(join(tmpdir(), "watchkeeper-idle-"));
const targets: Target[] = [];
const children: ChildProcess[] = [];

test.before(async () => {
  for (const name of ["config", "node_modules", "package.json"]) symlinkSync(resolve(name), join(root, name));
  await bundle(join(root, "dist"));
  for (let count = 0; count < 3; count += 1) targets.push(await Target.start());
  const { authority } = await testPki();
  writeFileSync(join(root, "ca.crt"), authority.certificate);
});
test.after(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const target of targets) target.stop();
  rmSync(root, { recursive: true, force: true });
});

type Started = { readonly pid: number; readonly port: number; readonly caFile: string };

/** Starts the program with the flags and variables of deploy/Containerfile. */
function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): number {
  const text = readFileSync("deploy/Containerfile", "utf8");
  const [, entry = "[]"] = /^ENTRYPOINT (.+)$/m.exec(text) ?? [];
  const flags = (JSON.parse(entry) as string[]).filter((word) => word.startsWith("--"));
  const allocator = Object.fromEntries(
    [...text.matchAll(/(MALLOC_\w+)=(\d+)/g)].map(([, k = "", v]) => [k, v]),
  );
  const child = spawn(process.execPath, [...flags, join(root, "dist/src/ops/cli/cli.js"), ...args], {
    env: { PATH: process.env["PATH"], ...allocator, ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  return child.pid ?? 0;
}

/** Starts the shipped configuration with the ports and backends of this test. */
async function nodeLocal(): Promise<Started> {
  const [port, metrics, admin] = [await freePort(), await freePort(), await freePort()];
  let at = 0;
  const text = readFileSync("deploy/node-local/config.yaml", "utf8")
    .replaceAll(/https:\/\/10\.[\d.]+:6443/g, () => `https://127.0.0.1:${targets[at++]?.port}`)
    .replace("127.0.0.1:7443", `127.0.0.1:${port}`)
    .replace("127.0.0.1:7481", `127.0.0.1:${metrics}\n  address: 127.0.0.1:${admin}`)
    .replace("/etc/kubernetes/pki/ca.crt", join(root, "ca.crt"));
  const file = join(root, "node-local.yaml");
  writeFileSync(file, text);
  return { pid: start(["run", "--config", file]), port, caFile: join(root, "ca.crt") };
}

async function sidecar(): Promise<Started> {
  const [port, metrics] = [await freePort(), await freePort()];
  const directories = ["direct", "shared", "state"].map((name) => [`--${name}`, join(root, name)] as const);
  for (const [, directory] of directories) mkdirSync(directory);
  const [direct, shared] = [join(root, "direct"), join(root, "shared")];
  writeFileSync(join(direct, "ca.crt"), readFileSync(join(root, "ca.crt")));
  writeFileSync(join(direct, "token"), "token");
  writeFileSync(join(direct, "namespace"), "default");
  const service = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: `${targets[0]?.port}` };
  const args = ["sidecar", ...directories.flat(), "--port", `${port}`, "--metrics-port", `${metrics}`];
  return { pid: start(args, service), port, caFile: join(shared, "ca.crt") };
}

function get(port: number, caFile: string): Promise<number | undefined> {
  return new Promise((answered, failed) => {
    const ca = readFileSync(caFile);
    const headers = { authorization: "Bearer token" };
    const request = https.get({ host: "127.0.0.1", port, path: "/api", ca, agent: false, headers });
    request.on("response", (response) => answered(response.resume().statusCode)).on("error", failed);
  });
}

async function firstAnswer({ port, caFile }: Started): Promise<void> {
  for (;;) {
    const status = await get(port, caFile).catch(() => 0);
    if (status === 200) return;
    await sleep(10);
  }
}

/** Returns the RSS of a process, and the CPU time that it has used. */
function usage(pid: number): { readonly rssMiB: number; readonly cpuMs: number } {
  const kib = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13).map(Number);
  return { rssMiB: kib / 1024, cpuMs: ((user ?? 0) + (system ?? 0)) * 10 };
}

for (const [shape, begin] of [
  ["node-local", nodeLocal],
  ["sidecar", sidecar],
] as const) {
  test(`an idle ${shape} process takes at most ${mostMiB} MiB`, async () => {
    const began = performance.now();
    const started = await begin();
    await within(60_000, "the first answer", firstAnswer(started));
    const [ms, { cpuMs }] = [Math.round(performance.now() - began), usage(started.pid)];
    await sleep(settledMs);
    const { rssMiB } = usage(started.pid);
    figure(`${shape}: first answer after ${ms} ms (${cpuMs} ms of CPU), ${Math.round(rssMiB)} MiB resident`);
    assert.ok(rssMiB > 30 && rssMiB <= mostMiB, `${rssMiB} MiB`);
  });
}

test.run();
