/** Which lanes a request may use. */
import type { TrustClass } from "../identity/trust.ts";

/** Short requests and long ones never share a lane: 80 watches would leave no room for a GET. */
export type LaneKind = "plain" | "long";

/** `owner` names the client of a private one, or is `rejectedOwner`. */
export type LaneKey = {
  readonly trust: TrustClass;
  readonly kind: LaneKind;
  readonly owner: string;
  /** The three in one word, made once: every request looks its row up by it. */
  readonly name: string;
};

/** The owner of lanes for anonymous requests, and for those from an address whose bearers are answered 401. */
export const rejectedOwner = "rejected";

/** `owner`: whose the lanes are alone; "" when clients share them. */
export function laneKey(trust: TrustClass, kind: LaneKind, owner = ""): LaneKey {
  return { trust, kind, owner, name: owner === "" ? `${trust} ${kind}` : `${trust} ${kind} ${owner}` };
}

/** Kept open even when nobody asks, so that the first request and a mass move find them (D2). */
export function warmKeys(vouched: readonly TrustClass[] = []): readonly LaneKey[] {
  const classes: readonly TrustClass[] = ["proven", ...vouched];
  return classes.flatMap((trust) => [laneKey(trust, "plain"), laneKey(trust, "long")]);
}
