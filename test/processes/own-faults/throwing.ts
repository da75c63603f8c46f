/**
 * A serving process with faults: each callback below throws, or its promise is rejected, and nothing catches it. Prints
 * the journal's faults, and at the end whether the process drains. With the argument "data-path", the last fault is not
 * one of the control side.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { inPart, onDataPath } from "../../../src/events/guarded-clock.ts";
import { beginServing } from "../../../src/ops/cli/serve/signals.ts";

const { signals, parts } = beginServing({
  out: process.stderr,
  level: "Error",
  format: "JSON",
  accessLog: "None",
});
const faults: string[] = [];
parts.journal.subscribe((entry) => {
  if (entry.kind === "internal.error") faults.push(`${entry.scope}: ${entry.message}`);
});

function fail(what: string): never {
  throw new Error(what);
}

const loopback = { host: "127.0.0.1", port: 0 };
const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port;

/** Opens a server that fails at the first bytes of a client, and a client that sends them. */
async function meet(what: string): Promise<void> {
  const server = net.createServer((socket) => {
    // As the proxy does: an event of a wrapped socket, such as one with TLS, is one of the part that has wrapped it.
    socket.once("data", () => setImmediate(() => fail(what)));
    socket.on("error", () => {});
  });
  server.listen(loopback);
  await once(server, "listening");
  const client = net.connect({ ...loopback, port: portOf(server) }, () => client.write("x"));
  client.on("error", () => {});
  await pause(50);
  client.destroy();
  server.close();
}

inPart("discovery", () => {
  setTimeout(() => fail("timer"), 1);
  setImmediate(() => fail("immediate"));
  process.nextTick(() => fail("tick"));
  queueMicrotask(() => fail("microtask"));
  void Promise.reject(new Error("rejection"));
  void (async () => {
    await pause(5);
    fail("async function");
  })();
});
inPart("admin", () => {
  const server = http.createServer((_request, response) => {
    response.end();
    fail("request handler");
  });
  server.listen(loopback, () => {
    http.get({ ...loopback, port: portOf(server) }, (response) => response.resume()).on("error", () => {});
  });
  setTimeout(() => server.close().closeAllConnections(), 1000).unref();
});
inPart("handover", () => {
  const child = spawn("true");
  child.on("exit", () => fail("handler of a child process"));
});
inPart("tracing", () => {
  const child = fork(new URL("sending.ts", import.meta.url), { execArgv: [] });
  child.on("message", () => fail("handler of a message"));
});
void Promise.reject(new Error("rejection in no part"));
await pause(1500);
const before = signals.drain.aborted;
if (process.argv[2] === "data-path")
  await inPart("admin", () => onDataPath(() => meet("socket of the data path")));
await pause(50);
process.stdout.write(
  `${JSON.stringify({ faults, before, after: signals.drain.aborted, code: process.exitCode ?? 0 })}\n`,
);
process.exit(0);
