/** Which upstream connections a request may use. */
import type { TrustClass } from "../identity/trust.ts";

/** Short requests and long ones never share an upstream connection: 80 watches would leave no room for a GET. */
export type ConnectionKind = "plain" | "long";

/** `owner` names the client of a private one, or is `rejectedOwner`. */
export type PoolKey = {
  readonly trust: TrustClass;
  readonly kind: ConnectionKind;
  readonly owner: string;
  /** The three in one word, made once: every request looks its row up by it. */
  readonly name: string;
};

/** The owner of upstream connections for anonymous requests, and for those from an address whose bearers are answered 401. */
export const rejectedOwner = "rejected";

/** `owner`: whose the upstream connections are alone; "" when clients share them. */
export function poolKey(trust: TrustClass, kind: ConnectionKind, owner = ""): PoolKey {
  return { trust, kind, owner, name: owner === "" ? `${trust} ${kind}` : `${trust} ${kind} ${owner}` };
}

/** Kept open even when nobody asks, so that the first request and a mass move find them (D2). */
export function warmKeys(vouched: readonly TrustClass[] = []): readonly PoolKey[] {
  const classes: readonly TrustClass[] = ["proven", ...vouched];
  return classes.flatMap((trust) => [poolKey(trust, "plain"), poolKey(trust, "long")]);
}
