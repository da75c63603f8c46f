/** Which upstream connections a request may use: the key of a shard (shard.ts). */
import type { TrustClass } from "../identity/trust.ts";

/** Short and long requests never share a connection, because 80 watches would leave no room for a GET. */
export type ConnectionKind = "plain" | "long";

/** `owner`: the client of a private connection, `rejectedOwner`, or "" for connections that clients share. */
export type PoolKey = {
  readonly trust: TrustClass;
  readonly kind: ConnectionKind;
  readonly owner: string;
  /** The three fields in one string. Made only once, because every request looks up its shard by this name. */
  readonly name: string;
};

/** The owner of connections for anonymous requests, and for requests from addresses whose tokens get 401. */
export const rejectedOwner = "rejected";

export function poolKey(trust: TrustClass, kind: ConnectionKind, owner = ""): PoolKey {
  return { trust, kind, owner, name: owner === "" ? `${trust} ${kind}` : `${trust} ${kind} ${owner}` };
}

/** Returns the keys of connections kept open without requests, for first requests and for moves of watches (D2). */
export function warmKeys(asserted: readonly TrustClass[] = []): readonly PoolKey[] {
  const classes: readonly TrustClass[] = ["proven", ...asserted];
  return classes.flatMap((trust) => [poolKey(trust, "plain"), poolKey(trust, "long")]);
}
