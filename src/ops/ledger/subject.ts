/**
 * The identity that a request claims. The proxy marks the claims of a JWT as unverified, because only the apiserver
 * verifies them. The proxy keeps nothing else of a credential.
 */

import { clipped } from "../../base/detach.ts";
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { ledgerLimits } from "./limits.ts";

/**
 * Where the identity comes from. jwt: unverified claims of a token. vouched: a client certificate that the proxy has
 * verified. bearer: a token that is no JWT. basic: a password. none: no credential.
 */
export type SubjectSource = "jwt" | "vouched" | "bearer" | "basic" | "none";

export type Subject = {
  /** The user's name, such as "system:serviceaccount:kube-system:job-controller"; "": unknown. */
  readonly name: string;
  readonly source: SubjectSource;
  /** Namespace of a service account and its pod (claim kubernetes.io); "": none. */
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
};

const nothing = { name: "", namespace: "", pod: "", node: "" } as const;
export const noSubject: Subject = { ...nothing, source: "none" };
const opaqueBearer: Subject = { ...nothing, source: "bearer" };
const basic: Subject = { ...nothing, source: "basic" };

export function subjectOf(authorization: string): Subject {
  if (authorization === "") return noSubject;
  if (/^basic /i.test(authorization)) return basic;
  const payload = /^bearer +[\w-]+\.([\w-]+)\.[\w-]*$/i.exec(authorization)?.[1];
  const claims = payload === undefined ? undefined : claimsIn(payload);
  return claims === undefined ? opaqueBearer : subjectIn(claims);
}

function claimsIn(payload: string): JsonRecord | undefined {
  if (payload.length > ledgerLimits.claimsChars) return undefined;
  // A token with two dots need not be a JWT, so its middle part may be anything.
  const claims = parseJson(Buffer.from(payload, "base64url").toString());
  return isRecord(claims) ? claims : undefined;
}

/** Reads the claims of serviceaccount/claims.go. A legacy token from a Secret has the namespace in a separate claim. */
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

/** Returns a claim without unprintable characters, because the admin page shows it. */
function printableAt(parent: JsonRecord | undefined, key: string): string {
  return clipped(textAt(parent, key), limits.subjectChars).replace(/[^\x21-\x7e]/g, "?");
}
