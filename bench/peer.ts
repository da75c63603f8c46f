/**
 * Starts a peer, which is a proxy under measurement. All peers have TLS and HTTP/2 on both sides, and are started in
 * the same way.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { cpuMs, proxyCore, type Running, rssKb, sleep, start, threadsMs } from "./processes.ts";

/** Where a peer runs: its ports, its certificates, and a folder for its configuration. */
export type Place = {
  readonly port: number;
  readonly metricsPort: number;
  readonly backendPort: number;
  readonly dir: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
};

export type Peer = {
  readonly name: string;
  /**
   * Text for the results: the settings that differ from the peer's defaults, and how the peer differs from the others.
   */
  readonly settings: string;
  /** How to install the peer if it cannot run here. Undefined if it can. */
  missing(): string | undefined;
  /**
   * Writes the peer's configuration into the place and returns the command. Returns undefined for the peer "direct",
   * which is no proxy.
   */
  command(place: Place): readonly string[] | undefined;
  /** The same peer, configured to leave TLS to the backend. Undefined if the peer cannot do that. */
  readonly passthrough?: Omit<Peer, "passthrough">;
  /** True for a peer that can only use HTTP/1.1 to its backend. */
  readonly isUpstreamH1?: boolean;
};

/** A running peer. */
export type Proxy = {
  readonly port: number;
  /** Time, in ms, from the start of the process to its first response. */
  readonly startedMs: number;
  readonly pid: number | undefined;
  /**
   * Returns the CPU time, in ms, so far. Returns NaN if there is no proxy, so that its absence never counts as a low
   * cost.
   */
  cpuMs(): number;
  fineCpuMs(): number;
  rssKb(): number;
  isOver(): boolean;
  said(): string;
  stop(): Promise<void>;
};

export const smallPath = "/api/v1/namespaces/default/pods/small";
/** The path of a response of 100 kB. */
export const mediumPath = "/api/v1/nodes";

/** Sends one GET on a new session. Resolves to false if the response is not 200, or if there is none. */
function answers(port: number, ca: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect(`https://localhost:${port}`, { ca, servername: "localhost" });
    const end = (isOk: boolean): void => {
      session.destroy();
      resolve(isOk);
    };
    session.setTimeout(1_000, () => end(false));
    session.on("error", () => end(false));
    const stream = session.request({ ":path": smallPath });
    stream.on("error", () => end(false));
    stream.on("response", (head) => end(head[":status"] === 200));
  });
}

/** Starts a peer on the proxy's core. Resolves after its first response. */
export async function launch(peer: Peer, place: Place): Promise<Proxy> {
  const ca = readFileSync(place.caFile);
  const command = peer.command(place);
  const began = performance.now();
  const running = command === undefined ? undefined : start(command, proxyCore);
  const port = running === undefined ? place.backendPort : place.port;
  while (!(await answers(port, ca))) {
    if (running?.isOver() === true || performance.now() - began > 15_000) {
      await running?.stop();
      throw new Error(`${peer.name} does not answer on port ${port}:\n${running?.said() ?? ""}`);
    }
    await sleep(5);
  }
  return proxyOf(running, port, performance.now() - began);
}

function proxyOf(running: Running | undefined, port: number, startedMs: number): Proxy {
  const pid = running?.pid;
  return {
    port,
    startedMs,
    pid,
    cpuMs: () => (pid === undefined ? Number.NaN : cpuMs(pid)),
    fineCpuMs: () => (pid === undefined ? Number.NaN : threadsMs(pid)),
    rssKb: () => (pid === undefined ? Number.NaN : rssKb(pid)),
    isOver: () => running?.isOver() === true,
    said: () => running?.said() ?? "",
    stop: async () => running?.stop(),
  };
}
