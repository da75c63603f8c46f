import { spawn } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../../src/base/limits.ts";
import { eventKinds, type Level } from "../../../../src/events/event-kinds.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { Log, type LogOptions } from "../../../../src/ops/admin/events/log.ts";
import { type ManualClock, manualClock } from "../../../support/clock.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/events/log");

type Written = {
  readonly journal: Journal;
  readonly log: Log;
  readonly lines: string[];
  readonly clock: ManualClock;
  /** How stdout behaves from now on. */
  readonly out: { writableLength: number; reason: Error | undefined };
};

function start(change: Partial<LogOptions> = {}): Written {
  const clock = manualClock();
  const journal = new Journal(clock);
  const lines: string[] = [];
  const out = {
    writableLength: 0,
    reason: undefined as Error | undefined,
    on: () => out,
    write(text: string, done: (reason?: Error) => void): boolean {
      if (out.reason === undefined) lines.push(text);
      done(out.reason);
      return true;
    },
  };
  const log = new Log(journal, { out, clock, format: "JSON", accessLog: "Errors", ...change });
  return { journal, log, lines, clock, out };
}

function failed(message: string, auditId = "a-1"): Entry {
  return { kind: "request.failed", code: "backend-lost", origin: "backend", message, auditId };
}

test("an entry is one line of JSON with Kubernetes' keys, its complaint under err", () => {
  const { journal, lines } = start();
  journal.write({ kind: "backend.added", backend: "cp-1" });
  journal.write(failed("gone"));
  assert.equal(lines, [
    '{"ts":1800000000000,"level":"info","msg":"backend.added","backend":"cp-1"}\n',
    '{"ts":1800000000000,"level":"warning","msg":"request.failed","code":"backend-lost","origin":"backend","err":"gone","audit-ID":"a-1"}\n',
  ]);
});

test("a changed format and access log apply from the next entry on", () => {
  const { journal, log, lines } = start();
  log.configure({ format: "Text", accessLog: "None" });
  journal.write(failed("gone"));
  assert.equal(lines, []);
  log.configure({ format: "Text", accessLog: "Errors" });
  journal.write(failed("gone"));
  assert.not.match(lines[0] ?? "", '"msg"');
  assert.is(lines.length, 1);
});

test("a passthrough connection has one line, when it is over and the operator wants it", () => {
  const who = { client: "10.0.0.9", listener: "nodes" };
  const ended = { ...who, backend: "cp-1", serverName: "a", durationMs: 9, sent: 1, received: 2 };
  const told = (accessLog: LogOptions["accessLog"]): number[] =>
    ["ended", "client_left", "backend_dead"].map((reason) => {
      const { journal, lines } = start({ accessLog });
      journal.write({ kind: "passthrough.ended", ...ended, reason });
      return lines.length;
    });
  assert.equal(told("None"), [0, 0, 0]);
  assert.equal(told("Errors"), [0, 0, 1]);
  assert.equal(told("All"), [1, 1, 1]);
  const { journal, lines } = start();
  journal.write({
    kind: "passthrough.refused",
    ...who,
    code: "no-backend",
    origin: "proxy",
    message: "gone",
  });
  assert.match(lines.join(), '"listener":"nodes","code":"no-backend","origin":"proxy","err":"gone"');
});

test("text is for people: quoted only where it must be", () => {
  const { journal, lines } = start({ format: "Text" });
  journal.write({ kind: "config.refused", file: "a.yaml", problems: ["a.yaml:1:1 unknown field", "b"] });
  journal.write({ kind: "drain.ended", cut: 0 });
  assert.equal(lines, [
    '2027-01-15T08:00:00.000Z error config.refused file=a.yaml err="a.yaml:1:1 unknown field; b"\n',
    "2027-01-15T08:00:00.000Z info drain.ended cut=0\n",
  ]);
});

test("nothing a client sends can make a second line, or move a terminal's cursor (A53)", () => {
  const hostile = 'a\r\n{"msg":"fake"}\x1b[2J\u2028\u202e\x9b\x7f"\\caf\xe9 \ud800';
  for (const format of ["JSON", "Text"] as const) {
    const { journal, lines } = start({ format });
    journal.write(failed(hostile, hostile));
    assert.is(lines.length, 1);
    assert.match(lines[0] ?? "", /^[\x20-\x7e]+\n$/);
    if (format === "JSON") assert.is(JSON.parse(lines[0] ?? "")["audit-ID"], hostile);
  }
});

test("a long field is clipped, and so is each problem of a list (A53)", () => {
  const { journal, lines } = start();
  journal.write(failed("x".repeat(1 << 20)));
  journal.write({ kind: "config.refused", file: "f", problems: ["x".repeat(1 << 20), "y"] });
  for (const line of lines) assert.ok(line.length < limits.logFieldChars + 200, line.slice(0, 80));
});

test("credentials that got into a message stay out of the log (A55)", () => {
  const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl";
  const { journal, lines } = start();
  for (const text of [
    `Authorization: Bearer ${jwt}`,
    `authorization: bearer 0123456789secret`,
    `bad subprotocol base64url.bearer.authorization.k8s.io.${jwt}`,
    `/api/v1/pods?watch=1&token=0123456789secret&x=1`,
    `refused ${jwt}`,
    `${"x".repeat(limits.logFieldChars - 30)} Bearer ${jwt}`,
    "Basic YWxpY2U6c2VjcmV0",
  ])
    journal.write(failed(text));
  for (const line of lines) assert.not.match(line, /eyJ|c2lnbmF0|secret|YWxp/);
  assert.is(lines.length, 7);
});

test("prose about bearer tokens is no credential", () => {
  const { journal, lines } = start();
  journal.write(failed("This proxy takes no client certificates: use a bearer token"));
  assert.match(lines[0] ?? "", "use a bearer token");
});

test("without an access log failed exchanges are not written, all else is", () => {
  const { journal, lines } = start({ accessLog: "None" });
  journal.write(failed("x"));
  journal.write({ kind: "drain.started" });
  assert.is(lines.length, 1);
});

test("as many lines are written as stdout takes", () => {
  const { journal, log, lines } = start();
  for (let index = 0; index < 5000; index++) journal.write({ kind: "backend.added", backend: "x" });
  assert.equal([lines.length, log.dropped], [5000, 0]);
});

test("with an access log of all requests, each one is a line; otherwise their number is limited, too", () => {
  for (const accessLog of ["All", "LongRunning"] as const) {
    const { journal, lines } = start({ accessLog });
    for (let index = 0; index < 5000; index++)
      journal.write({
        kind: "passthrough.ended",
        client: "10.0.0.1",
        listener: "nodes",
        backend: "a",
        serverName: "",
        reason: "ended",
        durationMs: 1,
        sent: 0,
        received: 0,
      });
    assert.is(lines.length, accessLog === "All" ? 5000 : eventKinds["passthrough.ended"].pace.most);
  }
});

test("dropped lines are counted, and reported at most once a second", () => {
  const { journal, log, lines, clock, out } = start();
  for (let index = 0; index < 500; index++) {
    out.writableLength = index % 2 === 0 ? limits.logBacklogBytes : 0;
    journal.write({ kind: "backend.added", backend: "x" });
  }
  assert.is(log.dropped, 250);
  const reports = (): readonly string[] => lines.filter((line) => line.includes("log.dropped"));
  assert.equal(
    reports().map((line) => JSON.parse(line)),
    [{ ts: clock.wall(), level: "warning", msg: "log.dropped", count: 1 }],
  );
  clock.advance(limits.logDropsMs);
  journal.write({ kind: "drain.started" });
  assert.is(JSON.parse(reports().at(-1) ?? "").count, 249);
  assert.match(lines.at(-1) ?? "", "drain.started");
});

test("a level selects its own lines and those of more severe ones, and a change applies to the next entry", () => {
  const entries: readonly Entry[] = [
    { kind: "internal.error", scope: "timer", message: "x" },
    failed("x"),
    { kind: "drain.started" },
    { kind: "upstream_connection.opened", backend: "cp-1", connection: "3" },
  ];
  const { journal, log, lines } = start();
  const writtenAt = (level: Level): readonly string[] => {
    lines.length = 0;
    log.configure({ level, format: "JSON", accessLog: "Errors" });
    for (const entry of entries) journal.write(entry);
    return lines.map((line) => JSON.parse(line).level);
  };
  assert.equal(writtenAt("Error"), ["error"]);
  assert.equal(writtenAt("Warning"), ["error", "warning"]);
  assert.equal(writtenAt("Info"), ["error", "warning", "info"]);
  assert.equal(writtenAt("Debug"), ["error", "warning", "info", "debug"]);
});

test("an incident and a changed backend have the level of their severity", () => {
  const { journal, lines } = start();
  const incident = { id: 1, incident: "x", subject: "s", backend: "", summary: "x", detectionMs: 0 };
  const changed = {
    kind: "backend.changed",
    backend: "a",
    detector: "x",
    valueMs: 0,
    limitMs: 0,
    reason: "x",
  } as const;
  for (const severity of ["critical", "warning"])
    journal.write({ kind: "incident.opened", ...incident, severity });
  journal.write({ ...changed, from: "ready", to: "dead" });
  journal.write({ ...changed, from: "suspect", to: "ready" });
  assert.equal(
    lines.map((line) => JSON.parse(line).level),
    ["error", "warning", "warning", "info"],
  );
});

test("one thing has one name in all entries, and what httplog has, too, gets its name there", () => {
  const { journal, lines } = start({ accessLog: "All" });
  journal.write({
    kind: "request.ended",
    client: "10.0.0.9",
    userAgent: "kubelet/v1.36",
    user: "alice",
    verb: "LIST",
    path: "/api/v1/nodes",
    resource: "",
    backend: "cp-1",
    code: 200,
    end: "complete",
    bytes: 5,
    events: 0,
    version: "7",
    moves: 0,
    durationMs: 12.345,
    auditId: "a-1",
  });
  const { srcIP, URI, verb, userAgent, resp, latency, resourceVersion, ...rest } = JSON.parse(lines[0] ?? "");
  assert.equal(
    [srcIP, URI, verb, userAgent, resp, latency, resourceVersion, rest["audit-ID"], rest.user],
    ["10.0.0.9", "/api/v1/nodes", "LIST", "kubelet/v1.36", 200, "12.345ms", "7", "a-1", "alice"],
  );
  for (const old of ["client", "path", "auditId", "code", "durationMs", "version", "agent", "subject"])
    assert.not.ok(old in rest, old);
});

test("while stdout takes nothing, lines are dropped instead of kept (F20)", () => {
  const { journal, log, lines, out } = start();
  out.writableLength = limits.logBacklogBytes;
  journal.write(failed("x"));
  assert.equal([lines.length, log.dropped], [0, 1]);
  out.writableLength = 0;
  journal.write(failed("y"));
  assert.is(lines.length, 2);
});

test("after an error of stdout it goes on, and is whole again when stdout is (F20)", () => {
  const { journal, log, lines, out } = start();
  out.reason = new Error("ENOSPC");
  journal.write(failed("x"));
  assert.is(log.dropped, 1);
  out.reason = undefined;
  journal.write(failed("y"));
  assert.is(lines.length, 1);
});

test("a stopped log writes no more", () => {
  const { journal, log, lines } = start();
  log.stop();
  journal.write(failed("x"));
  assert.is(lines.length, 0);
});

/**
 * A program that writes 4,000 entries of 500 bytes to its stdout while its event loop keeps turning, and then reports
 * on stderr how many lines the log has dropped.
 */
const child = `
  import { Log } from "./src/ops/admin/events/log.ts";
  import { wallClock } from "./src/base/clock.ts";
  import { Journal } from "./src/events/journal.ts";
  const journal = new Journal(wallClock);
  const log = new Log(journal, { out: process.stdout, clock: wallClock, format: "JSON", accessLog: "Errors" });
  const entry = { kind: "discovery.failed", from: "y".repeat(250), reason: "x".repeat(250) };
  let turns = 0;
  const timer = setInterval(() => {
    for (let index = 0; index < 400; index++) journal.write(entry);
    if (++turns < 10) return;
    clearInterval(timer);
    // The results of the last writes arrive later.
    setTimeout(() => process.stderr.write("alive " + log.dropped, () => process.exit(0)), 50);
  }, 5);`;

async function aliveWith(stdout: number | "pipe" | "closed"): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const running = spawn(process.execPath, ["--input-type=module-typescript", "-e", child], {
    stdio: ["ignore", stdout === "closed" ? "pipe" : stdout, "pipe"],
  });
  if (stdout === "closed") running.stdout?.destroy();
  let told = "";
  running.stderr?.on("data", (bytes: Buffer) => {
    told += bytes.toString();
  });
  running.on("exit", (code) => resolve(`${told} exit ${code}`));
  return within(30_000, "the child to end", promise).finally(() => running.kill());
}

test("a full disk, a reader that is gone and one that reads nothing neither end nor stop the process (F20)", async () => {
  assert.match(await aliveWith("pipe"), /^alive [1-9]\d* exit 0$/, "no process reads");
  assert.match(await aliveWith("closed"), /^alive [1-9]\d* exit 0$/, "EPIPE");
  if (existsSync("/dev/full"))
    // The count may exceed 4,000, because lines that report dropped lines may themselves be dropped.
    assert.match(await aliveWith(openSync("/dev/full", "w")), /^alive 40\d\d exit 0$/, "ENOSPC");
});

test.run();
