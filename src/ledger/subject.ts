/**
 * The identity that a request claims. Nothing is verified: a JWT's claims are unchecked and shown as such; the
 * apiserver decides what is true. Nothing of a credential except these claims is kept.
 */

import { clipped } from "../base/detach.ts";
import { limits } from "../base/limits.ts";

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

type JsonRecord = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function claimsIn(payload: string): JsonRecord | undefined {
  if (payload.length > limits.claimsChars) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return isRecord(claims) ? claims : undefined;
  } catch {
    // Three dot-separated words that are no JWT.
    return undefined;
  }
}

/** serviceaccount/claims.go; a legacy token from a Secret has its namespace and name under flat keys. */
function subjectIn(claims: JsonRecord): Subject {
  const kubernetes = recordIn(claims, "kubernetes.io");
  const legacy = textIn(claims, "kubernetes.io/serviceaccount/namespace");
  return {
    name: textIn(claims, "sub"),
    source: "jwt",
    namespace: textIn(kubernetes, "namespace") || legacy,
    pod: textIn(recordIn(kubernetes, "pod"), "name"),
    node: textIn(recordIn(kubernetes, "node"), "name"),
  };
}

function recordIn(parent: JsonRecord, key: string): JsonRecord {
  const value = parent[key];
  return isRecord(value) ? value : {};
}

/** Printable characters only, because pages show it. */
function textIn(parent: JsonRecord, key: string): string {
  const value = parent[key];
  if (typeof value !== "string") return "";
  return clipped(value, limits.subjectChars).replace(/[^\x21-\x7e]/g, "?");
}
