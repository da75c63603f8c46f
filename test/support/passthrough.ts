import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { Backends } from "../../src/health/backends.ts";
import type { RouteConfig } from "../../src/ops/config/config.ts";
import { PendingQueue } from "../../src/proxy/request/pending-queue.ts";
import { Passthrough } from "../../src/proxy/tunnel/passthrough.ts";
import { routeBySni } from "../../src/proxy/tunnel/passthrough-router.ts";
import type { WatchTunnel } from "../../src/proxy/tunnel/stuck-sockets.ts";
import type { Ends } from "../../src/upstream/net/proxy-protocol.ts";
import type { PoolSet } from "../../src/upstream/pool/pool-set.ts";
import { type ManualClock, manualClock } from "./clock.ts";
import { until } from "./h1.ts";
import { loadsOf } from "./loads.ts";
import { connectRaw, RawPeer } from "./raw.ts";

export type ScriptedPassthrough = {
  readonly clock: ManualClock;
  readonly entries: Entry[];
  readonly passthrough: Passthrough;
  readonly backends: Backends;
  readonly hold: PendingQueue;
  /** For each upstream socket, the addresses of the client connection that it belongs to. */
  readonly behalves: Ends[];
  /** For each accepted connection, the cluster that was selected. */
  readonly led: string[];
  connect(): Promise<RawPeer>;
  /** Resolves with the backend's end of the next socket that the proxy opens to it. */
  backend(name: string): Promise<RawPeer>;
  readonly countAt: (name: string) => number;
  /** Gives the backend the evidence that leads to this health state. */
  judge(name: string, state: "ready" | "suspect" | "draining" | "dead" | "refusing"): void;
  /** Simulates that no data gets through on any socket. */
  stick(): void;
  close(): void;
};

/**
 * Starts TLS passthrough on a listening socket. The test plays the backends byte by byte. `loadsWith`: the loads by
 * which backends are compared; default: only the numbers of passthrough connections count.
 */
export async function startPassthrough(
  names: readonly string[],
  routes: readonly RouteConfig[] = [{ serverNames: [], cluster: "", backends: [] }],
  loadsWith: PoolSet["loadsWith"] = (besides) => loadsOf(besides),
): Promise<ScriptedPassthrough> {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const sockets: Socket[] = [];
  const played = new Map<string, { readonly server: Server; readonly peers: RawPeer[]; taken: number }>();
  for (const name of names) {
    const peers: RawPeer[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      peers.push(new RawPeer(socket));
    });
    await listen(server);
    played.set(name, { server, peers, taken: 0 });
  }
  const rules = { rise: 0, needsProof: true };
  const hold = new PendingQueue(clock);
  const backends = new Backends(names, {
    clock,
    journal,
    rules,
    onVerdict({ state }) {
      if (state !== "dead") hold.release();
    },
  });
  const hung = new Set<Parameters<WatchTunnel>[1]>();
  const behalves: Ends[] = [];
  const led: string[] = [];
  const passthrough = new Passthrough({
    clock,
    journal,
    backends,
    pending: hold,
    pools: { loadsWith, suspectAfterMs: () => 500 },
    connect(backend, ends) {
      behalves.push(ends);
      const server = played.get(backend)?.server;
      const port = server?.listening === true ? portOf(server) : 1;
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      socket.on("error", () => {});
      sockets.push(socket);
      return socket;
    },
    watchTunnel({ backend }, cut) {
      hung.add(cut);
      const stop = backends.onLost(backend, () => cut("backend_dead"));
      return () => {
        hung.delete(cut);
        stop();
      };
    },
  });
  const server = createServer({}, (socket) => {
    socket.on("error", () => {});
    sockets.push(socket);
    const source = { address: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 };
    const destination = { address: socket.localAddress ?? "", port: socket.localPort ?? 0 };
    const caller = { ends: { source, destination }, listener: "nodes", routes };
    const passingOf = (cluster: string): Passthrough => {
      led.push(cluster);
      return passthrough;
    };
    routeBySni(socket, caller, passingOf, { clock, journal });
  });
  await listen(server);
  const own: ScriptedPassthrough = {
    clock,
    entries,
    passthrough,
    backends,
    hold,
    behalves,
    led,
    async connect() {
      const peer = await connectRaw(portOf(server));
      sockets.push(peer.socket);
      return peer;
    },
    async backend(name) {
      const one = played.get(name);
      if (one === undefined) throw new Error(`There is no backend ${name}`);
      await until(`a socket at ${name}`, () => one.peers.length > one.taken);
      one.taken += 1;
      return one.peers[one.taken - 1] as RawPeer;
    },
    countAt: (name) => played.get(name)?.peers.length ?? 0,
    judge(name, state) {
      const tell: Backends["learn"] = (...args) => backends.learn(...args);
      // Evidence counts only if its probe began after the latest response.
      clock.advance(10);
      const begunAt = clock.now();
      if (state === "ready") {
        tell(name, { kind: "connection-opened", ms: 1 });
        tell(name, { kind: "readyz", readiness: "ready", ms: 1, reason: "" });
      } else if (state === "draining") {
        tell(name, { kind: "readyz", readiness: "shutdown", ms: 1, reason: "" });
      } else if (state === "suspect") {
        tell(name, { kind: "connections-silent", ms: 500, limitMs: 500 });
      } else {
        tell(name, { kind: "connections-lost", by: "ping", reason: "PING unanswered" });
        const met = state === "dead" ? "silence" : "refusal";
        tell(name, { kind: "fresh", met, begunAt, ms: 1000, reason: "" });
      }
    },
    stick() {
      for (const cut of hung) cut("connection_stuck");
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      for (const { server: one } of played.values()) one.close();
    },
  };
  for (const name of names) own.judge(name, "ready");
  return own;
}

async function listen(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
