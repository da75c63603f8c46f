/** Which upstream connections a request may use. */
import type { TrustClass } from "../identity/trust.ts";

/** Short and long requests never share a connection: 80 watches would leave no room for a GET. */
export type ConnectionKind = "plain" | "long";

/** `owner`: the client that a private connection belongs to, or `rejectedOwner`. */
export type PoolKey = {
  readonly trust: TrustClass;
  readonly kind: ConnectionKind;
  readonly owner: string;
  /** All three in one string, made once: every request looks up its shard by it. */
  readonly name: string;
};

/** The owner of connections for anonymous requests, and for those from an address whose bearers are answered 401. */
export const rejectedOwner = "rejected";

/** `owner`: the client that uses the connections alone; "" if clients share them. */
export function poolKey(trust: TrustClass, kind: ConnectionKind, owner = ""): PoolKey {
  return { trust, kind, owner, name: owner === "" ? `${trust} ${kind}` : `${trust} ${kind} ${owner}` };
}

/** Connections that are kept open without requests, so that the first request and a mass move find them (D2). */
export function warmKeys(asserted: readonly TrustClass[] = []): readonly PoolKey[] {
  const classes: readonly TrustClass[] = ["proven", ...asserted];
  return classes.flatMap((trust) => [poolKey(trust, "plain"), poolKey(trust, "long")]);
}
