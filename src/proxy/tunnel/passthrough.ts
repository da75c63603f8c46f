/**
 * Connections whose TLS ends at a backend. The proxy picks the backend once, by SNI, load, weight and zone
 * (upstream/pick.ts), and joins both sockets until one side ends.
 *
 * The proxy cannot send PINGs inside these connections, so they depend on their backend's health state (D6). If the
 * backend is dead, both sockets are reset, and client-go reconnects at once instead of after its own timeout of 45 s. A
 * fault of one connection alone shows in the kernel's socket table (stuck-sockets.ts). A connection is never ended
 * because it is silent (D7).
 */

import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import type { RouteConfig } from "../../ops/config/config.ts";
import type { Ends } from "../../upstream/net/proxy-protocol.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { Retries } from "../../upstream/pool/retry-policy.ts";
import type { PendingQueue } from "../request/pending-queue.ts";
import { type DialledSocket, dialThrough, type Opening } from "./dial-through.ts";
import { type PassthroughClient, type ReceivedHello, refuseCaller } from "./passthrough-router.ts";
import type { WatchTunnel } from "./stuck-sockets.ts";
import { type RelayEnd, TcpRelay } from "./tcp-relay.ts";

export type PassthroughParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Prefix of this cluster's backend names. Routes name the backends without this prefix. Default: none. */
  readonly prefix?: string;
  readonly backends: Backends;
  readonly pending: PendingQueue;
  readonly pools: Pick<PoolSet, "loadsWith" | "suspectAfterMs">;
  readonly connect: (backend: string, ends: Ends) => Socket;
  readonly watchTunnel: WatchTunnel;
};

/** A client connection that is joined to a backend. `at`: the index of this entry in `#live`. */
type JoinedConnection = {
  readonly relay: TcpRelay;
  readonly backend: string;
  readonly names: ClientNames;
  at: number;
};

type ClientNames = { readonly client: string; readonly listener: string; readonly serverName: string };

export class Passthrough {
  readonly #parts: PassthroughParts;
  readonly #hedges: TokenBucket;
  readonly #live: JoinedConnection[] = [];
  readonly #socketCounts = new Map<string, number>();
  /** For each removed backend that still has connections: a function that stops the timer which will end them. */
  readonly #leaving = new Map<string, () => void>();
  #withoutBackend = 0;
  readonly #endedBytes = { sent: 0, received: 0 };

  constructor(parts: PassthroughParts) {
    this.#parts = parts;
    this.#hedges = new TokenBucket(parts.clock, limits.hedgeBurst, limits.hedgesPerSecond);
  }

  /** Number of connections that are open or being opened. */
  get openCount(): number {
    return this.#live.length + this.#withoutBackend;
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#socketCounts;
  }

  /** Bytes sent to clients, and received from them, since the process started. */
  get bytes(): { readonly sent: number; readonly received: number } {
    let { sent, received } = this.#endedBytes;
    for (const { relay } of this.#live) {
      sent += relay.bytes.sent;
      received += relay.bytes.received;
    }
    return { sent, received };
  }

  /**
   * Ends the connections to backends that are no longer configured or discovered, after `graceMs`, because a removed
   * backend has no health state, and its connections could hang unnoticed. If the backend is back before that, its
   * connections stay.
   */
  reconcile(names: readonly string[], graceMs: number): void {
    for (const [name, stop] of this.#leaving)
      if (names.includes(name)) {
        stop();
        this.#leaving.delete(name);
      }
    const gone = Array.from(this.#socketCounts.keys()).filter((name) => !names.includes(name));
    for (const name of gone) if (!this.#leaving.has(name)) this.#leave(name, graceMs);
  }

  #leave(name: string, graceMs: number): void {
    const end = (): void => {
      this.#leaving.delete(name);
      for (const { backend, relay } of Array.from(this.#live))
        if (backend === name) relay.cut("backend_removed");
    };
    this.#leaving.set(name, this.#parts.clock.after(graceMs, end));
  }

  /** Ends all connections, as the last step of a drain. */
  cut(): void {
    for (const stop of this.#leaving.values()) stop();
    this.#leaving.clear();
    for (const { relay } of Array.from(this.#live)) relay.cut("draining");
  }

  /** Takes over a socket whose ClientHello was read. An internal error is journaled. */
  pass(down: Socket, read: ReceivedHello, caller: PassthroughClient, route: RouteConfig): void {
    this.#pass(down, read, caller, route).catch((reason: unknown) => {
      const { message } = failureFrom(reason, "proxy");
      this.#parts.journal.write({ kind: "internal.error", scope: "session", message });
      down.destroy();
    });
  }

  async #pass(
    down: Socket,
    { hello, bytes }: ReceivedHello,
    caller: PassthroughClient,
    route: RouteConfig,
  ): Promise<void> {
    const { serverName = "", length, hasEarlyData } = hello;
    const opening = { bytes, isRepeatable: bytes.length === length && !hasEarlyData };
    this.#withoutBackend += 1;
    const reached = await this.#reach(opening, caller, route).finally(() => (this.#withoutBackend -= 1));
    if (reached instanceof Failure) refuseCaller(down, caller, reached, this.#parts);
    else
      this.#join(down, reached, {
        client: caller.ends.source.address,
        listener: caller.listener,
        serverName,
      });
  }

  /**
   * Returns a socket to a backend. While no backend can be reached, the connection waits as long as any request would;
   * then a Failure is returned.
   */
  async #reach(
    opening: Opening,
    { ends }: PassthroughClient,
    route: RouteConfig,
  ): Promise<DialledSocket | Failure> {
    const { clock, pools, pending, backends } = this.#parts;
    const { until } = pending;
    const parts = {
      clock,
      doubtMs: (name: string) => pools.suspectAfterMs(name),
      next: (retries: Retries) => this.#choose(retries, route),
      connect: (backend: string) => this.#connect(backend, ends),
      mayHedge: () => this.#hedges.take(),
    };
    for (;;) {
      // Each attempt begins after the previous one has failed. While no backend answers, a dial would only hang (D14).
      // oxlint-disable-next-line no-await-in-loop
      if (backends.areAllSilent) await pending.isBack(backends.silentUntil);
      // oxlint-disable-next-line no-await-in-loop
      const outcome = await dialThrough(opening, parts);
      if (!(outcome instanceof Failure)) return outcome;
      // oxlint-disable-next-line no-await-in-loop
      if (!(await pending.isBack(Math.max(until, backends.silentUntil)))) return outcome;
    }
  }

  #choose(retries: Retries, { backends }: RouteConfig): string | Failure {
    const { prefix = "" } = this.#parts;
    const { views } = this.#parts.backends;
    const names = backends.map((name) => prefix + name);
    const allowed = names.length === 0 ? views : views.filter(({ name }) => names.includes(name));
    const loads = this.#parts.pools.loadsWith((name) => this.#socketCounts.get(name) ?? 0);
    return retries.nextBackend(allowed, loads);
  }

  #connect(backend: string, ends: Ends): Socket {
    const socket = this.#parts.connect(backend, ends);
    this.#count(socket, backend);
    return socket;
  }

  #count(socket: Socket, backend: string): void {
    this.#socketCounts.set(backend, (this.#socketCounts.get(backend) ?? 0) + 1);
    socket.once("close", () => {
      const left = (this.#socketCounts.get(backend) ?? 1) - 1;
      if (left > 0) this.#socketCounts.set(backend, left);
      else this.#socketCounts.delete(backend);
    });
  }

  #join(down: Socket, { socket: up, backend }: DialledSocket, names: ClientNames): void {
    if (down.destroyed) return void up.destroy();
    const { clock, journal, watchTunnel } = this.#parts;
    const openedAt = clock.now();
    const ended = (reason: RelayEnd): void => {
      stopWatching();
      const { sent, received } = relay.bytes;
      this.#forget(live, { sent, received });
      const durationMs = Math.round(clock.now() - openedAt);
      journal.write({ kind: "passthrough.ended", ...names, backend, reason, durationMs, sent, received });
    };
    const relay = new TcpRelay({ down, up, clock }, ended);
    const live: JoinedConnection = { relay, backend, names, at: 0 };
    live.at = this.#live.push(live) - 1;
    const stopWatching = watchTunnel({ down, up, backend }, (reason) => relay.cut(reason));
  }

  #forget(live: JoinedConnection, { sent, received }: TcpRelay["bytes"]): void {
    this.#endedBytes.sent += sent;
    this.#endedBytes.received += received;
    const last = this.#live.pop();
    if (last === undefined || last === live) return;
    this.#live[live.at] = last;
    last.at = live.at;
  }
}
