/**
 * Opens a socket to a backend for an Upgrade, which shared HTTP/2 connections cannot carry. No byte of the request is
 * sent before the socket is open, so after a failed dial it is safe to dial the next backend.
 */
import type { Socket } from "node:net";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Backends } from "../../health/backends.ts";
import type { Client } from "../../upstream/context/client.ts";
import type { AssertedTrust } from "../../upstream/identity/asserted-identity.ts";
import type { Ends } from "../../upstream/net/proxy-protocol.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import { Retries } from "../../upstream/pool/retry-policy.ts";
import type { PendingQueue } from "../request/pending-queue.ts";
import type { DialledSocket } from "./dial-through.ts";

export type DialUpgradeParts = {
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly pending: PendingQueue;
  /** Returns the number of tunnels to a backend, a load that its upstream connections do not show. */
  readonly tunnels: (backend: string) => number;
  /** Opens an HTTP/1.1 socket to a backend within `withinMs`. `trust` selects the client certificate. */
  readonly connect: (
    backend: string,
    withinMs: number,
    of: { readonly trust: AssertedTrust | undefined; readonly ends: Ends | undefined },
  ) => Promise<Socket | Failure>;
  /** The trust class of an identity that the proxy asserts; undefined: the client's own credential is sent. */
  readonly trust?: AssertedTrust | undefined;
};

/** Returns a socket to a backend. While no backend answers, the Upgrade waits as any request does (D14). */
export async function dialUpgrade(client: Client, parts: DialUpgradeParts): Promise<DialledSocket | Failure> {
  const { backends, pending } = parts;
  for (;;) {
    // Each wait and each attempt begins when the previous one is over.
    // oxlint-disable-next-line no-await-in-loop
    while (backends.areAllSilent && (await pending.isBack(backends.silentUntil)));
    // oxlint-disable-next-line no-await-in-loop
    if (isUnfit(parts) && !(await pending.isBack(pending.until))) return parts.pools.unfitFor(parts.trust);
    // oxlint-disable-next-line no-await-in-loop
    const outcome = await attempt(client, parts);
    if (!(outcome instanceof Failure) || !backends.areAllSilent) return outcome;
  }
}

/** True if no backend has shown yet that it takes the identity that the proxy asserts. */
function isUnfit({ backends: { views }, pools, trust }: DialUpgradeParts): boolean {
  const isWaiting = views.length > 0 && pools.fitFor(views, trust).length === 0;
  return isWaiting && pools.unfitFor(trust).code !== "unproven-identity";
}

async function attempt(client: Client, parts: DialUpgradeParts): Promise<DialledSocket | Failure> {
  const { backends, pools, tunnels, connect, trust } = parts;
  const loads = pools.loadsWith(tunnels);
  const retries = new Retries();
  let failure: Failure | undefined;
  while (!retries.isSpent) {
    const views = pools.fitFor(backends.views, trust);
    if (views.length === 0 && backends.views.length > 0) return failure ?? pools.unfitFor(trust);
    const backend = retries.nextBackend(views, loads, client.backend);
    if (backend instanceof Failure) return failure ?? backend;
    // The next backend is dialled only after this one has failed.
    // oxlint-disable-next-line no-await-in-loop
    const socket = await connect(backend, limits.dialMs, { trust, ends: client.ends });
    if (!(socket instanceof Failure)) {
      client.bind(backend);
      return { socket, backend };
    }
    failure = socket;
    retries.failed(backend);
  }
  return failure ?? new Failure("no-backend", "proxy", "No backend was tried");
}
