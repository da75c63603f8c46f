import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { command, endCommands } from "../../../support/command.ts";
import { freePort } from "../../../support/free-port.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/run");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-run-"));
const children: ChildProcess[] = [];

test.after(() => {
  for (const child of children) child.kill("SIGKILL");
  endCommands();
  rmSync(directory, { recursive: true, force: true });
});

function configFile(name: string, backendPort = 1): string {
  const file = join(directory, name);
  writeFileSync(
    file,
    `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: test}
listeners: [{name: local, address: "127.0.0.1:0"}]
clusters: [{name: default, backends: [{name: a, url: "http://127.0.0.1:${backendPort}"}]}]
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0"}
drain: {shutdownDelay: 200ms, timeout: 1s}
`,
  );
  return file;
}

type Started = { readonly child: ChildProcess; readonly said: (word: string) => Promise<string> };

function start(file: string, flags: readonly string[] = []): Started {
  const child = spawn(process.execPath, [...flags, "bin/watchkeeper.js", "run", "--config", file], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, MALLOC_TRIM_THRESHOLD_: "2097152" },
  });
  children.push(child);
  let text = "";
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      for (const look of waiting) look();
    });
  }
  const said = (word: string): Promise<string> =>
    within(
      30_000,
      `${word} in the log`,
      new Promise((resolve) => {
        const look = (): void => {
          const line = text.split("\n").find((one) => one.includes(word));
          if (line === undefined) return;
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
        look();
      }),
    );
  return { child, said };
}

const exitOf = (child: ChildProcess): Promise<number | null> =>
  within(10_000, "the exit", new Promise((resolve) => child.once("exit", resolve)));

test("a run has the young heap that was measured, unless its starter asks for another", async () => {
  const isOurs = async (flags: readonly string[]): Promise<boolean> => {
    const { child, said } = start(configFile(`heap-${flags.length}.yaml`), flags);
    await said("listener.opened");
    return readFileSync(`/proc/${child.pid}/cmdline`, "utf8").includes("--max-semi-space-size=8\0");
  };
  assert.equal([await isOurs([]), await isOurs(["--max-semi-space-size=16"])], [true, false]);
});

test("a run gives freed memory back, unless its starter has other wishes for malloc", async () => {
  const { child, said } = start(configFile("malloc.yaml"));
  await said("listener.opened");
  const env = readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0");
  assert.equal(
    env.filter((one) => one.startsWith("MALLOC_")),
    ["MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=2097152", "MALLOC_MMAP_THRESHOLD_=65536"],
  );
});

test("a client that is let in can query readiness at once: the probe port opens before the clients' listeners", async () => {
  const { said } = start(configFile("order.yaml"));
  await said('"listener":"local"');
  assert.match(await said("listener.opened"), '"listener":"metrics"');
});

test("where no process may begin anew it runs all the same, as it was started", async () => {
  const forbidden = "data:text/javascript,process.execPath='/nowhere/node'";
  const { child, said } = start(configFile("no-execve.yaml"), ["--import", forbidden]);
  await said("listener.opened");
  assert.not.match(readFileSync(`/proc/${child.pid}/cmdline`, "utf8"), /semi-space/);
});

test("a running process applies changed settings of health, admin and metadata without a restart", async () => {
  const probed: string[] = [];
  const backend = createServer((request, response) => {
    probed.push(request.url ?? "");
    response.end("ok");
  });
  backend.listen(0, "127.0.0.1");
  await once(backend, "listening");
  const bound = backend.address();
  const file = configFile("hot.yaml", typeof bound === "object" && bound !== null ? bound.port : 0);
  const { child, said } = start(file);
  const opened = await said('"listener":"metrics"');
  const started = JSON.parse(await said('"process.started"')) as Record<string, unknown>;
  assert.is(started["sha256"], hash("sha256", readFileSync(file)));
  assert.equal(
    [started["level"], started["listeners"], started["file"]],
    ["info", ["local 127.0.0.1:0"], file],
  );
  const text = readFileSync(file, "utf8")
    .replace("name: test}", "name: renamed}")
    .replace('metricsAddress: "127.0.0.1:0"', 'metricsAddress: "[::1]:0", readOnly: true');
  writeFileSync(file, `${text}health: {probe: {path: /livez, interval: 250ms}}\n`);
  child.kill("SIGHUP");
  assert.match(await said('"config.reloaded"'), hash("sha256", readFileSync(file)));
  const moved = await said('"address":"[::1]:');
  const metrics = async (line: string): Promise<string> => {
    const answer = await fetch(`http://${(JSON.parse(line) as { address: string }).address}/metrics`);
    return answer.text();
  };
  assert.match(await metrics(moved), "watchkeeper_config_last_reload_successful 1");
  await metrics(opened).then(
    () => assert.unreachable("the old port is closed"),
    () => undefined,
  );
  const livez = (): number => probed.filter((path) => path.startsWith("/livez")).length;
  const before = livez();
  await new Promise((resolve) => setTimeout(resolve, 3000));
  assert.ok(livez() - before >= 5, `${livez() - before} probes of /livez in 3 s`);
  backend.close();
});

test("a changed setting that needs a restart is in the gauge, and `status` names it and exits with 1", async () => {
  const { authority, serving } = await testPki();
  const { certificate: cert, key } = serving;
  const backend = http2.createSecureServer({ cert, key, allowHTTP1: true }, (_request, response) => {
    response.end("ok");
  });
  backend.on("session", (session) => session.on("error", () => {}));
  backend.listen(0, "127.0.0.1").unref();
  await once(backend, "listening");
  const file = configFile("restart.yaml");
  const url = `https://localhost:${(backend.address() as net.AddressInfo).port}`;
  writeFileSync(join(directory, "restart-ca.crt"), authority.certificate);
  writeFileSync(
    file,
    readFileSync(file, "utf8").replace('"http://127.0.0.1:1"}]', `"${url}"}], tls: {caFile: restart-ca.crt}`),
  );
  const { child, said } = start(file);
  const addressOf = async (listener: string): Promise<string> =>
    (JSON.parse(await said(`"listener":"${listener}"`)) as { address: string }).address;
  const gauge = async (): Promise<readonly string[]> => {
    await sleep(adminLimits.scrapeReuseMs);
    const answer = await fetch(`http://${await addressOf("metrics")}/metrics`);
    const lines = (await answer.text()).split("\n");
    return lines.filter((line) => line.startsWith("watchkeeper_config_restart_required{"));
  };
  const admin = await addressOf("admin");
  const status = async (): Promise<{ readonly code: number | null; readonly out: string }> => {
    const run = command(["status", "--admin", admin]);
    return { code: await run.ended, out: run.text() };
  };
  await said('"to":"ready"');
  const before = await status();
  assert.equal([before.code, await gauge()], [0, []], before.out);
  const perClient = "connectionPool: {perClient: true}, backends:";
  writeFileSync(file, readFileSync(file, "utf8").replace("backends:", perClient));
  child.kill("SIGHUP");
  const setting = "clusters.default.connectionPool.perClient";
  assert.match(await said('"config.reloaded"'), setting);
  assert.equal(await gauge(), [`watchkeeper_config_restart_required{part="${setting}"} 1`]);
  const after = await status();
  assert.is(after.code, 1);
  assert.match(after.out, `! ${setting} takes effect only after a restart\n`);
  child.kill("SIGKILL");
  backend.close();
});

test("a bad file is told with all its problems and exit code 2", () => {
  const file = join(directory, "bad.yaml");
  writeFileSync(
    file,
    "apiVersion: watchkeeper.dev/v1alpha2\nkind: WatchkeeperConfiguration\nlisteners: []\ncluster: {}\n",
  );
  const { status, stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", "run", "--config", file]);
  assert.is(status, 2);
  assert.match(stderr.toString(), /bad\.yaml:4:1: unknown field "cluster"/);
  assert.match(stderr.toString(), 'did you mean "clusters"');
  assert.match(stderr.toString(), /bad\.yaml:3:\d+: listeners/);
});

test("what cannot start says why and ends, it does not stay behind without serving", () => {
  const file = join(directory, "no-ca.yaml");
  const text = readFileSync(configFile("base.yaml"), "utf8").replace(
    'clusters: [{name: default, backends: [{name: a, url: "http://127.0.0.1:1"}]}]',
    'clusters: [{name: default, backends: [{name: a, url: "https://127.0.0.1:1"}], tls: {caFile: absent.crt}}]',
  );
  writeFileSync(file, text);
  const { status, signal, stderr } = spawnSync(
    process.execPath,
    ["bin/watchkeeper.js", "run", "--config", file],
    {
      timeout: 30_000,
    },
  );
  assert.equal([status, signal], [2, null]);
  assert.match(stderr.toString(), 'absent.crt": does not exist');
});

test("a port that another process has is reported in one line, by its listener, before anything is dialled", async () => {
  const other = net.createServer().listen(0, "127.0.0.1");
  await within(5000, "the other to listen", once(other, "listening"));
  const { port } = other.address() as net.AddressInfo;
  const file = join(directory, "taken.yaml");
  writeFileSync(
    file,
    readFileSync(configFile("base.yaml"), "utf8").replace("127.0.0.1:0", `127.0.0.1:${port}`),
  );
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["bin/watchkeeper.js", "run", "--config", file],
    { timeout: 30_000 },
  );
  other.close();
  assert.equal(
    [status, stderr.toString()],
    [2, `listener local: cannot listen on 127.0.0.1:${port}: already in use\n`],
  );
  const told = stdout.toString().trimEnd().split("\n");
  assert.equal(
    told.filter((line) => !/"(process.started|listener.opened|probe.changed)"/.test(line)),
    [],
  );
});

test("a certificate that is not there is told with its listener", () => {
  const file = join(directory, "no-certificate.yaml");
  const text = readFileSync(configFile("base.yaml"), "utf8").replace(
    'address: "127.0.0.1:0"}]',
    'address: "127.0.0.1:0", tls: {certFile: absent.crt, keyFile: absent.key}}]',
  );
  writeFileSync(file, text);
  const { stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", "run", "--config", file], {
    timeout: 30_000,
  });
  assert.match(stderr.toString(), /^listener local: Cannot use "[^"]*absent\.crt": does not exist\n$/m);
});

test("a fault that nothing caught drains the process, which ends with 1 (D10)", async () => {
  const preload = join(directory, "fault.mjs");
  writeFileSync(preload, 'process.once("SIGWINCH", () => { throw new Error("nothing caught this"); });\n');
  const { child, said } = start(configFile("fault.yaml"), ["--import", preload]);
  await said("listener");
  child.kill("SIGWINCH");
  assert.match(await said("internal.error"), "nothing caught this");
  assert.is(await exitOf(child), 1);
});

test("a wrong flag is named, and every command explains itself", () => {
  const said = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", ...args]);
    return `${String(status)} ${stdout.toString()}${stderr.toString()}`;
  };
  assert.match(said("run", "--confg", "x"), /^2 Unknown option "--confg" \(did you mean "--config"\?\)/);
  assert.match(said("bogus"), /^2 Unknown command "bogus"/);
  assert.match(said("config", "extra"), /^2 /);
  for (const name of ["run", "check", "config", "demo", "pki", "sidecar", "manifest", "try", "version"]) {
    assert.match(said(name, "--help"), new RegExp(`^0 usage: watchkeeper ${name}`), name);
  }
  assert.match(said("--version"), /^0 watchkeeper \d/);
});

test("no file, and a file that is not there, are usage and config errors", () => {
  for (const args of [["run"], ["run", "--config", join(directory, "absent.yaml")], ["run", "--nonsense"]]) {
    const { status, stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", ...args]);
    assert.is(status, 2, args.join(" "));
    assert.not.match(stderr.toString(), /^ {4}at /m);
  }
});

test("it says where it listens, and stops on SIGTERM with 0", async () => {
  const { child, said } = start(configFile("good.yaml"));
  assert.match(await said("listener"), /127\.0\.0\.1:\d+/);
  child.kill("SIGTERM");
  assert.is(await exitOf(child), 0);
});

test("a changed file is taken, a broken one is refused and the last good one serves on", async () => {
  const file = configFile("reload.yaml");
  const { child, said } = start(file);
  await said("listener");
  writeFileSync(file, "clusters: [");
  await said("config.refused");
  configFile("reload.yaml", 2);
  await said("config.reloaded");
  child.kill("SIGHUP");
  assert.is(child.exitCode, null);
  child.kill("SIGTERM");
  assert.is(await exitOf(child), 0);
});

test("a changed access log and format apply without a restart", async () => {
  const file = configFile("logging.yaml");
  const { child, said } = start(file);
  const port = /127\.0\.0\.1:(\d+)/.exec(await said('"listener":"local"'))?.[1];
  writeFileSync(file, `${readFileSync(file, "utf8")}logging: {format: Text, accessLog: All}\n`);
  await said("config.reloaded");
  void fetch(`http://127.0.0.1:${port}/version`, { signal: AbortSignal.timeout(500) }).catch(() => undefined);
  assert.match(await said("request.ended"), /^\S+ .*request\.ended.*URI=\/version/);
  child.kill("SIGKILL");
});

test("--log-level takes precedence over the file, also after a reload", async () => {
  const port = await freePort();
  const file = configFile("level.yaml");
  const text = readFileSync(file, "utf8").replace(
    'admin: {address: "127.0.0.1:0"',
    `admin: {address: "127.0.0.1:${port}"`,
  );
  writeFileSync(file, `${text}logging: {level: Debug}\n`);
  const run = command(["run", "--config", file, "--log-level", "Warning"]);
  await run.said('"to":"dead"');
  writeFileSync(file, `${text}logging: {level: Info}\n`);
  const reload = command(["reload", "--admin", `127.0.0.1:${port}`]);
  assert.is(await reload.ended, 0, reload.text());
  run.child.kill("SIGTERM");
  assert.is(await run.ended, 0);
  assert.not.match(run.text(), /"level":"(info|debug)"/);
  const wrong = command(["run", "--config", file, "--log-level", "info"]);
  assert.is(await wrong.ended, 2);
  assert.match(wrong.text(), '--log-level must be one of Error, Warning, Info, Debug, not "info"');
});

test("a second signal ends it at once", async () => {
  const { child, said } = start(configFile("hurry.yaml"));
  await said("listener");
  child.kill("SIGTERM");
  await said("drain");
  child.kill("SIGTERM");
  assert.is(await exitOf(child), 0);
});

const thereIs = (file: string): Promise<void> =>
  within(
    30_000,
    file,
    (async () => {
      while (!existsSync(file)) await sleep(20);
    })(),
  );

test("--pid-file: the file has the process id, a link in its way is not followed, and the exit removes it", async () => {
  const [file, kept] = [join(directory, "pid"), join(directory, "kept")];
  writeFileSync(kept, "untouched");
  symlinkSync(kept, `${file}.new`);
  const proxy = command(["run", "--config", configFile("pid.yaml"), "--pid-file", file]);
  await proxy.said('"listener":"local"');
  await thereIs(file);
  const pid = Number(readFileSync(file, "utf8"));
  assert.is(readFileSync(file, "utf8"), `${pid}\n`);
  assert.ok(lstatSync(file).isFile());
  assert.not(existsSync(`${file}.new`));
  assert.is(readFileSync(kept, "utf8"), "untouched");
  process.kill(pid, "SIGTERM");
  assert.is(await proxy.ended, 0);
  assert.not(existsSync(file));
});

test("--pid-file: a file with another process id stays at the exit, and one that cannot be written is reported", async () => {
  const file = join(directory, "other-pid");
  const proxy = command(["run", "--config", configFile("other-pid.yaml"), "--pid-file", file]);
  const absent = join(directory, "absent", "pid");
  const other = command(["run", "--config", configFile("odd-pid.yaml"), "--pid-file", absent]);
  await thereIs(file);
  const pid = Number(readFileSync(file, "utf8"));
  writeFileSync(file, "1\n");
  process.kill(pid, "SIGTERM");
  await other.said("Cannot write the pid file");
  other.child.kill("SIGTERM");
  assert.is(await proxy.ended, 0);
  assert.is(readFileSync(file, "utf8"), "1\n", "a successor's");
  assert.is(await other.ended, 0, "the proxy serves without the file");
});

test.run();
