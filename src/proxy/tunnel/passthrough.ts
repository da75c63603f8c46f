/**
 * Connections whose TLS is left to the backend: chosen once, by the server's name and by how many each backend has, and
 * joined until one side ends. They have no PING of their own, so they share their backend's verdict (D6): proven dead,
 * both attempts are reset, and client-go is back elsewhere at once instead of after its own 45 s. A hole under one of them
 * alone shows in the kernel's table (hung-tunnels.ts). Nobody is cut for being silent (D7).
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import type { Ends } from "../net/proxy-protocol.ts";
import type { PendingQueue } from "../request/pending-queue.ts";
import type { PoolSet } from "../upstream/pool-set.ts";
import type { Retries } from "../upstream/retry.ts";
import { dialThrough, type Opening, type Reached } from "./dial-through.ts";
import { type Caller, type ReadHello, refuseCaller } from "./passthrough-router.ts";
import type { Route } from "./passthrough-routes.ts";
import type { OnHung } from "./stuck-sockets.ts";
import { TcpRelay } from "./tcp-relay.ts";

export type PassthroughParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** What a route's names have before them among `backends`; left out: "". */
  readonly prefix?: string;
  readonly backends: Backends;
  readonly pending: PendingQueue;
  readonly pools: Pick<PoolSet, "shareOf" | "suspectAfterMs">;
  /** Opens a TCP socket to a backend, on behalf of a client. */
  readonly connect: (backend: string, ends: Ends) => Socket;
  readonly onHung: OnHung;
};

/** One that is joined. */
type Live = { readonly relay: TcpRelay; readonly backend: string; at: number };

export class Passthrough {
  readonly #parts: PassthroughParts;
  readonly #hedges: TokenBucket;
  readonly #live: Live[] = [];
  /** Sockets to each backend, those that are opening included; who has none is left out. */
  readonly #counts = new Map<string, number>();
  /** Backends that are gone, with connections left; how to stop waiting for those. */
  readonly #leaving = new Map<string, () => void>();
  /** Known by their hello, and not joined yet. */
  #asking = 0;
  /** Of those that are over. */
  readonly #past = { sent: 0, received: 0 };

  constructor(parts: PassthroughParts) {
    this.#parts = parts;
    this.#hedges = new TokenBucket(parts.clock, limits.hedgeBurst, limits.hedgesPerSecond);
  }

  /** Connections that are open, or asking for it. */
  get openCount(): number {
    return this.#live.length + this.#asking;
  }

  /** Sockets to each backend that has any. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Octets that clients were sent, and that they sent, since the start. */
  get bytes(): { readonly sent: number; readonly received: number } {
    let { sent, received } = this.#past;
    for (const { relay } of this.#live) {
      sent += relay.bytes.sent;
      received += relay.bytes.received;
    }
    return { sent, received };
  }

  /**
   * A backend that is configured, or found, no more: nobody judges it from then on, so what is left on it after `graceMs`,
   * as long as a drain would wait, ends. Should it come back meanwhile, nothing does.
   */
  reconcile(names: readonly string[], graceMs: number): void {
    for (const [name, stop] of this.#leaving)
      if (names.includes(name)) {
        stop();
        this.#leaving.delete(name);
      }
    const gone = Array.from(this.#counts.keys()).filter((name) => !names.includes(name));
    for (const name of gone) if (!this.#leaving.has(name)) this.#leave(name, graceMs);
  }

  #leave(name: string, graceMs: number): void {
    const end = (): void => {
      this.#leaving.delete(name);
      for (const { backend, relay } of Array.from(this.#live))
        if (backend === name) relay.cut("backend removed");
    };
    this.#leaving.set(name, this.#parts.clock.after(graceMs, end));
  }

  /** Ends them all: the drain's last act. */
  cut(): void {
    for (const stop of this.#leaving.values()) stop();
    this.#leaving.clear();
    for (const { relay } of Array.from(this.#live)) relay.cut("draining");
  }

  /** Takes a socket over whose client has said for whom it is; it tells its own faults. */
  pass(down: Socket, greeting: ReadHello, caller: Caller, route: Route): void {
    this.#pass(down, greeting, caller, route).catch((reason: unknown) => {
      const { message } = failureFrom(reason, "proxy");
      this.#parts.journal.write({ kind: "internal.error", scope: "session", message });
      down.destroy();
    });
  }

  async #pass(down: Socket, { hello, octets }: ReadHello, caller: Caller, route: Route): Promise<void> {
    const { serverName = "", length, hasEarlyData } = hello;
    const opening = { octets, isRepeatable: octets.length === length && !hasEarlyData };
    this.#asking += 1;
    const reached = await this.#reach(opening, caller, route).finally(() => (this.#asking -= 1));
    if (reached instanceof Failure) refuseCaller(down, caller, reached, this.#parts);
    else
      this.#join(down, reached, {
        client: caller.ends.source.address,
        listener: caller.listener,
        serverName,
      });
  }

  /** While no backend can be reached it waits as long as a request would. */
  async #reach(opening: Opening, { ends }: Caller, route: Route): Promise<Reached | Failure> {
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
      // Each begins when the one before has failed. While no backend answers a dial would only wait in the hole (D14).
      // oxlint-disable-next-line no-await-in-loop
      if (backends.areAllSilent) await pending.isBack(backends.silentUntil);
      // oxlint-disable-next-line no-await-in-loop
      const outcome = await dialThrough(opening, parts);
      if (!(outcome instanceof Failure)) return outcome;
      // oxlint-disable-next-line no-await-in-loop
      if (!(await pending.isBack(Math.max(until, backends.silentUntil)))) return outcome;
    }
  }

  #choose(retries: Retries, { backends }: Route): string | Failure {
    const { prefix = "" } = this.#parts;
    const { views } = this.#parts.backends;
    const names = backends.map((name) => prefix + name);
    const allowed = names.length === 0 ? views : views.filter(({ name }) => names.includes(name));
    const loads = (name: string): number =>
      ((this.#counts.get(name) ?? 0) + 1) / this.#parts.pools.shareOf(name);
    return retries.nextBackend(allowed, loads);
  }

  #connect(backend: string, ends: Ends): Socket {
    const socket = this.#parts.connect(backend, ends);
    this.#counts.set(backend, (this.#counts.get(backend) ?? 0) + 1);
    socket.once("close", () => {
      const left = (this.#counts.get(backend) ?? 1) - 1;
      if (left > 0) this.#counts.set(backend, left);
      else this.#counts.delete(backend);
    });
    return socket;
  }

  #join(down: Socket, { socket: up, backend }: Reached, names: Names): void {
    if (down.destroyed) return void up.destroy();
    const { clock, journal, backends, onHung } = this.#parts;
    const openedAt = clock.now();
    const ended = (reason: string): void => {
      stopDead();
      stopHung();
      const { sent, received } = relay.bytes;
      this.#forget(live, { sent, received });
      const durationMs = Math.round(clock.now() - openedAt);
      journal.write({ kind: "passthrough.ended", ...names, backend, reason, durationMs, sent, received });
    };
    const relay = new TcpRelay({ down, up, clock }, { ended });
    const live: Live = { relay, backend, at: 0 };
    live.at = this.#live.push(live) - 1;
    const stopDead = backends.onLost(backend, () => relay.cut("backend dead"));
    const stopHung = onHung({ down, up, backend }, () => relay.cut("nothing gets through on its connection"));
  }

  /** The last one takes its place. */
  #forget(live: Live, { sent, received }: TcpRelay["bytes"]): void {
    this.#past.sent += sent;
    this.#past.received += received;
    const last = this.#live.pop();
    if (last === undefined || last === live) return;
    this.#live[live.at] = last;
    last.at = live.at;
  }
}

/** For the journal. */
type Names = { readonly client: string; readonly listener: string; readonly serverName: string };
