/**
 * The identity that a request claims. Nothing is verified: a JWT's claims are unchecked and shown as such; the
 * apiserver decides what is true. Nothing of a credential except these claims is kept.
 */

import { clipped } from "../base/detach.ts";
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { ledgerLimits } from "./limits.ts";

/** `jwt`: unverified claims of a token; `vouched`: an identity that the proxy itself has verified. */
export type SubjectSource = "jwt" | "vouched" | "bearer" | "basic" | "none";

export type Subject = {
  /** "system:serviceaccount:kube-system:job-controller"; "" if there is none. */
  readonly name: string;
  readonly source: SubjectSource;
  /** The pod and the node to which a service account's token is bound (kubernetes.io claims); "" if none. */
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
};

const nothing = { name: "", namespace: "", pod: "", node: "" } as const;
export const noSubject: Subject = { ...nothing, source: "none" };
const opaqueBearer: Subject = { ...nothing, source: "bearer" };
const basic: Subject = { ...nothing, source: "basic" };

/** Returns the subject of an Authorization field's value. */
export function subjectOf(authorization: string): Subject {
  if (authorization === "") return noSubject;
  if (/^basic /i.test(authorization)) return basic;
  const payload = /^bearer +[\w-]+\.([\w-]+)\.[\w-]*$/i.exec(authorization)?.[1];
  const claims = payload === undefined ? undefined : claimsIn(payload);
  return claims === undefined ? opaqueBearer : subjectIn(claims);
}

function claimsIn(payload: string): JsonRecord | undefined {
  if (payload.length > ledgerLimits.claimsChars) return undefined;
  // Three dot-separated words may also be no JWT.
  const claims = parseJson(Buffer.from(payload, "base64url").toString());
  return isRecord(claims) ? claims : undefined;
}

/** serviceaccount/claims.go; a legacy token from a Secret has its namespace and name under flat keys. */
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

/** Printable characters only, because pages show it. */
function printableAt(parent: JsonRecord | undefined, key: string): string {
  return clipped(textAt(parent, key), limits.subjectChars).replace(/[^\x21-\x7e]/g, "?");
}
