/** The connection pools of all backends, by name. A reload or discovery adds and removes backends. */

import { Failure } from "../../base/failure.ts";
import type { BackendView } from "../../health/backend.ts";
import type { Client } from "../context/client.ts";
import type { AssertedTrust } from "../identity/asserted-identity.ts";
import { isAsserted, type TrustClass } from "../identity/trust.ts";
import type { BackendShares } from "./backend-shares.ts";
import type { Connection } from "./connection.ts";
import type { ConnectionPool, PoolSettings } from "./connection-pool.ts";
import { upstreamLimits } from "./limits.ts";
import type { Loads } from "./pick.ts";
import { type ConnectionKind, type PoolKey, poolKey, rejectedOwner } from "./pool-key.ts";

/** Which backends have shown that they take the identities that the proxy asserts (D9). */
export type Assertions = {
  readonly isProven: (trust: AssertedTrust, backend: string) => boolean;
  /** True if every backend has shown that it does not. */
  readonly areRefused: (trust: AssertedTrust) => boolean;
  /** Called when a backend becomes ready. */
  readonly ready: (backend: string) => void;
};

export type PoolSetOptions = {
  /** Default: all backends take all identities. */
  readonly assertions?: Assertions | undefined;
  readonly poolFor: (backend: string) => ConnectionPool;
  /** True if every client has upstream connections of its own (D2). */
  readonly isPerClient: boolean;
  readonly shares: BackendShares;
  /**
   * Returns the part of a backend's load that open streams do not show: short requests that have already ended, and
   * bytes of watch events.
   */
  readonly activityOf: (backend: string) => number;
};

/** Built once and not for each request, because nearly all requests use these keys. */
const sharedKeys = {
  proven: { plain: poolKey("proven", "plain"), long: poolKey("proven", "long") },
  unproven: { plain: poolKey("unproven", "plain"), long: poolKey("unproven", "long") },
  rejected: {
    plain: poolKey("unproven", "plain", rejectedOwner),
    long: poolKey("unproven", "long", rejectedOwner),
  },
  "front-proxy": { plain: poolKey("front-proxy", "plain"), long: poolKey("front-proxy", "long") },
  impersonate: { plain: poolKey("impersonate", "plain"), long: poolKey("impersonate", "long") },
};

export class PoolSet implements Loads {
  readonly #options: PoolSetOptions;
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #owners = new WeakMap<Client, string>();
  #ownerCount = 0;

  constructor(options: PoolSetOptions) {
    this.#options = options;
  }

  /** Opens pools for new backends, and stops the pools of removed backends. */
  reconcile(backends: readonly string[]): void {
    for (const name of backends) {
      if (this.#pools.has(name)) continue;
      const connections = this.#options.poolFor(name);
      this.#pools.set(name, connections);
      connections.start();
    }
    // This loop runs only when the new pools are open, so that requests that waited for a removed backend can go to a
    // new one.
    for (const [name, connections] of this.#pools) {
      if (backends.includes(name)) continue;
      this.#pools.delete(name);
      connections.stop();
    }
  }

  /**
   * Applies new settings to all existing pools. The `poolFor` of the caller applies them to pools that it creates
   * later.
   */
  configure(settings: PoolSettings): void {
    for (const pool of this.#pools.values()) pool.configure(settings);
  }

  get all(): ReadonlyMap<string, ConnectionPool> {
    return this.#pools;
  }

  poolOf(backend: string): ConnectionPool | undefined {
    return this.#pools.get(backend);
  }

  /** Returns a connection that has room for a stream and whose PING is not late; undefined: none. */
  promptConnection(backend: string, key: PoolKey): Connection | undefined {
    const connection = this.#pools.get(backend)?.take(key);
    return connection?.isPrompt === true ? connection : undefined;
  }

  /** Notifies the attempts at a draining backend that they may move. */
  leave(backend: string): void {
    const shards = this.#pools.get(backend)?.shards ?? [];
    for (const connection of shards.flatMap(({ connections }) => connections)) connection.leave();
  }

  /**
   * Replaces all connections of the trust class `trust`, because they still present the old certificate of the proxy.
   * `wasProven`: true if the backend takes the identities that are asserted with the old certificate.
   */
  renew(trust: TrustClass, wasProven: (backend: string) => boolean): void {
    for (const [backend, connections] of this.#pools) connections.renew(trust, wasProven(backend));
  }

  /**
   * Returns the backends to which a request may go. A request that asserts an identity goes only to backends that take
   * it: another backend would take the request for the proxy's own.
   */
  fitFor(views: readonly BackendView[], trust: AssertedTrust | undefined): readonly BackendView[] {
    const { assertions } = this.#options;
    if (trust === undefined || assertions === undefined) return views;
    const isFit = ({ name }: BackendView): boolean => assertions.isProven(trust, name);
    return views.every(isFit) ? views : views.filter(isFit);
  }

  /** Returns why a request that asserts an identity can go to no backend, if none is fit for it. */
  unfitFor(trust: AssertedTrust | undefined): Failure {
    const isFinal = trust !== undefined && this.#options.assertions?.areRefused(trust) === true;
    const message = isFinal
      ? "The backends do not accept this proxy's word for the user of a client certificate: use a bearer token"
      : "No backend has shown yet that it accepts this proxy's word for the user of a client certificate";
    return new Failure(isFinal ? "unproven-identity" : "no-backend", "proxy", message);
  }

  loadOf(backend: string): number {
    const connections = this.#pools.get(backend);
    if (connections === undefined) return 0;
    return connections.shards.reduce((sum, { waiting }) => sum + waiting, connections.openStreams);
  }

  /** Returns for how many ms the backend may be silent before it is suspect. */
  suspectAfterMs(backend: string): number {
    return this.#pools.get(backend)?.deadlines.suspectAfterMs ?? upstreamLimits.connectionDoubtMs;
  }

  /**
   * Returns the backend's load divided by the backend's share. `besides`: additional load that upstream connections do
   * not show.
   */
  readonly weightOf = (backend: string, besides = 0): number => {
    const { shares, activityOf } = this.#options;
    const weight = (this.loadOf(backend) + activityOf(backend) + besides + 1) / shares.of(backend);
    return shares.isNear(backend) ? weight : weight * upstreamLimits.spillRatio + upstreamLimits.spillFloor;
  };

  readonly isPaused = (backend: string): boolean => this.#options.shares.isPaused(backend);

  readonly isNear = (backend: string): boolean => this.#options.shares.isNear(backend);

  readonly random = (): number => this.#options.shares.random();

  /** Returns the loads, each with the result of `besides` added: load that upstream connections do not show. */
  loadsWith(besides: (backend: string) => number): Loads {
    const { isPaused, isNear, random } = this;
    return { isPaused, isNear, random, weightOf: (backend) => this.weightOf(backend, besides(backend)) };
  }

  /**
   * Returns the key for a request. `trust` is "rejected" for anonymous requests, and for requests from addresses whose
   * tokens get 401.
   */
  keyFor(
    wanted: { readonly trust: TrustClass | "rejected"; readonly kind: ConnectionKind },
    client: Client,
  ): PoolKey {
    const { trust, kind } = wanted;
    if (trust !== "private" && !this.#options.isPerClient) return sharedKeys[trust][kind];
    // The key contains the trust class, because one client may need two kinds of private connections: with and without
    // the proxy's own credential.
    return poolKey(isAsserted(trust) ? trust : "private", kind, this.#ownerOf(client));
  }

  #ownerOf(client: Client): string {
    let owner = this.#owners.get(client);
    if (owner === undefined) {
      this.#ownerCount += 1;
      owner = String(this.#ownerCount);
      this.#owners.set(client, owner);
    }
    return owner;
  }
}
