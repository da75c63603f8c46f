import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import { createH1 } from "../../src/proxy/downstream/h1-connection.ts";
import type { Limit } from "../../src/proxy/limits/limit.ts";
import type { DialledSocket } from "../../src/proxy/tunnel/dial-through.ts";
import type { WatchTunnel } from "../../src/proxy/tunnel/stuck-sockets.ts";
import { UpgradeHandler } from "../../src/proxy/tunnel/upgrade-handler.ts";
import { type ManualClock, manualClock } from "./clock.ts";
import { anyone, until } from "./h1.ts";
import { connectRaw, RawPeer } from "./raw.ts";

export type ScriptedSplice = {
  readonly clock: ManualClock;
  readonly entries: Entry[];
  readonly splices: UpgradeHandler;
  /** If set, the next connection attempt to the backend fails with it. */
  failure: Failure | undefined;
  /** The limits that apply to the next Upgrade, or the failure with which it is refused. */
  limited: readonly Limit[] | Failure;
  /** If set, the journal throws this error when a tunnel opens, to simulate a bug of the proxy. */
  journalFault: string | undefined;
  connect(): Promise<RawPeer>;
  /** Resolves with the backend's end of the next upstream socket. */
  backend(): Promise<RawPeer>;
  readonly backendCount: () => number;
  /** Makes the backend dead, which ends the tunnels to it. */
  die(): void;
  /** Simulates that no data gets through on the sockets of the tunnels. */
  stick(): void;
  close(): void;
};

/** Starts the upgrade handler on a listening socket. The test plays the backend byte by byte. */
export async function startSplice(pathPrefix = ""): Promise<ScriptedSplice> {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const write = journal.write.bind(journal);
  journal.write = (entry) => {
    if (entry.kind === "tunnel.opened" && own.journalFault !== undefined) throw new Error(own.journalFault);
    write(entry);
  };
  const sockets = new Set<Socket>();
  const backends: RawPeer[] = [];
  const cuts = new Set<Parameters<WatchTunnel>[1]>();
  let taken = 0;
  const backendServer = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    backends.push(new RawPeer(socket));
  });
  await listen(backendServer);
  const dialUpgrade = async (): Promise<DialledSocket | Failure> => {
    if (own.failure !== undefined) return own.failure;
    const socket = connect({ port: portOf(backendServer), host: "127.0.0.1" });
    sockets.add(socket);
    await new Promise((resolve) => socket.once("connect", resolve));
    return { socket, backend: "apiserver-1" };
  };
  const splices = new UpgradeHandler({
    pathPrefix: () => pathPrefix,
    watchTunnel(_tunnel, cut) {
      cuts.add(cut);
      return () => cuts.delete(cut);
    },
    clock,
    journal,
    dialUpgrade,
    limitsOf: () => own.limited,
    identify: (request) => ({
      fields: [...request.fields, new Field("x-forwarded-for", "192.0.2.1")],
      auditId: "id",
    }),
  });
  const accept = createH1({
    clock,
    journal,
    handle: () => {
      throw new Error("An Upgrade became an exchange");
    },
    upgrade: (...args) => splices.upgrade(...args),
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    accept(socket, anyone());
  });
  await listen(server);
  const own: ScriptedSplice = {
    clock,
    entries,
    splices,
    failure: undefined,
    limited: [],
    journalFault: undefined,
    async connect() {
      const peer = await connectRaw(portOf(server));
      sockets.add(peer.socket);
      return peer;
    },
    async backend() {
      await until("a socket at the backend", () => backends.length > taken);
      taken += 1;
      return backends[taken - 1] as RawPeer;
    },
    backendCount: () => backends.length,
    die() {
      for (const cut of cuts) cut("backend_dead");
    },
    stick() {
      for (const cut of cuts) cut("connection_stuck");
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      backendServer.close();
    },
  };
  return own;
}

async function listen(server: ReturnType<typeof createServer>): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}

function portOf(server: ReturnType<typeof createServer>): number {
  return (server.address() as AddressInfo).port;
}

/**
 * Requests and the response for tests of exec over HTTP/1.1: `exec` has the given fields, `spdy` asks for SPDY as
 * kubectl does, `switched` is the 101 response.
 */
export const exec = (method: string, ...fields: string[]): string =>
  [`${method} /api/v1/namespaces/n/pods/p/exec?command=sh HTTP/1.1`, "Host: api", ...fields, "", ""].join(
    "\r\n",
  );
export const spdy = exec("POST", "Connection: Upgrade", "Upgrade: SPDY/3.1", "Content-Length: 0");
export const switched =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
