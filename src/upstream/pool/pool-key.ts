/** The key of the upstream connections that a request may use. Each key has one shard (shard.ts). */
import type { TrustClass } from "../identity/trust.ts";

/**
 * Short ("plain") and long requests never share a connection. A connection carries about 80 streams, so 80 watches
 * would leave no stream for a GET.
 */
export const connectionKinds = ["plain", "long"] as const;
export type ConnectionKind = (typeof connectionKinds)[number];

/** Key of a shard. `owner`: the client of a private connection, `rejectedOwner`, or "" for shared connections. */
export type PoolKey = {
  readonly trust: TrustClass;
  readonly kind: ConnectionKind;
  readonly owner: string;
  /** The three fields as one string, built only once, because every request looks up its shard by this string. */
  readonly name: string;
};

/**
 * Value of `owner` for the connections that carry anonymous requests, and requests from addresses whose tokens get 401.
 */
export const rejectedOwner = "rejected";

export function poolKey(trust: TrustClass, kind: ConnectionKind, owner = ""): PoolKey {
  return { trust, kind, owner, name: owner === "" ? `${trust} ${kind}` : `${trust} ${kind} ${owner}` };
}

/**
 * Returns the keys of the connections that are kept open without requests. Thanks to these connections, first requests
 * and watches that move to another backend need not wait for a dial (D2).
 */
export function warmKeys(asserted: readonly TrustClass[] = []): readonly PoolKey[] {
  const classes: readonly TrustClass[] = ["proven", ...asserted];
  return classes.flatMap((trust) => [poolKey(trust, "plain"), poolKey(trust, "long")]);
}
