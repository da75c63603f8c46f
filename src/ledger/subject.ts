/**
 * The identity that a request claims. The claims of a JWT are not verified here, and are shown as unverified: the
 * apiserver decides what is true. Apart from these claims nothing of a credential is kept.
 */

import { clipped } from "../base/detach.ts";
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { ledgerLimits } from "./limits.ts";

/** `jwt`: unverified claims of a token; `vouched`: an identity that the proxy itself has verified. */
export type SubjectSource = "jwt" | "vouched" | "bearer" | "basic" | "none";

export type Subject = {
  /** For example "system:serviceaccount:kube-system:job-controller"; "": unknown. */
  readonly name: string;
  readonly source: SubjectSource;
  /** The pod and the node to which a service account's token is bound (kubernetes.io claims); "": none. */
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
};

const nothing = { name: "", namespace: "", pod: "", node: "" } as const;
export const noSubject: Subject = { ...nothing, source: "none" };
const opaqueBearer: Subject = { ...nothing, source: "bearer" };
const basic: Subject = { ...nothing, source: "basic" };

/** Returns the identity that the value of an Authorization field claims. */
export function subjectOf(authorization: string): Subject {
  if (authorization === "") return noSubject;
  if (/^basic /i.test(authorization)) return basic;
  const payload = /^bearer +[\w-]+\.([\w-]+)\.[\w-]*$/i.exec(authorization)?.[1];
  const claims = payload === undefined ? undefined : claimsIn(payload);
  return claims === undefined ? opaqueBearer : subjectIn(claims);
}

function claimsIn(payload: string): JsonRecord | undefined {
  if (payload.length > ledgerLimits.claimsChars) return undefined;
  // Three words with dots between them need not be a JWT.
  const claims = parseJson(Buffer.from(payload, "base64url").toString());
  return isRecord(claims) ? claims : undefined;
}

/** Reads the claims of serviceaccount/claims.go. A legacy token from a Secret has its namespace under a flat key. */
function subjectIn(claims: JsonRecord): Subject {
  const kubernetes = recordAt(claims, "kubernetes.io");
  const legacy = printableAt(claims, "kubernetes.io/serviceaccount/namespace");
  return {
    name: printableAt(claims, "sub"),
    source: "jwt",
    namespace: printableAt(kubernetes, "namespace") || legacy,
    pod: printableAt(recordAt(kubernetes, "pod"), "name"),
    node: printableAt(recordAt(kubernetes, "node"), "name"),
  };
}

/** Replaces unprintable characters, because the admin page shows the claim. */
function printableAt(parent: JsonRecord | undefined, key: string): string {
  return clipped(textAt(parent, key), limits.subjectChars).replace(/[^\x21-\x7e]/g, "?");
}
