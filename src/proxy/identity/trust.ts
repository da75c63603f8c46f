/**
 * Decides which upstream connections a request may share (D2), and remembers the bearer tokens that a backend accepted
 * recently.
 *
 * After a single 401 or anonymous request, the apiserver sends GOAWAY on the whole session (watch.md W7). So requests
 * that may cause a GOAWAY do not share connections with proven clients.
 */
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { type Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { bearerEndsAt } from "./credential-expiry.ts";

/** An accepted bearer token stays proven for this many ms (D2). */
export const provenMs = 600_000;
/** Maximum number of accepted tokens that are remembered, each as a hash and a time. */
export const rememberedBearers = 10_000;
/** Apiservers accept a JWT for this many ms after its expiry (go-jose's leeway); its proof lasts `endedBearerMs`. */
const bearerLeewayMs = 60_000;
export const endedBearerMs = 5000;

/**
 * `front-proxy` and `impersonate` are the classes of clients whose identity the proxy asserts. Their upstream
 * connections carry the proxy's own credential. Any other request on such a connection would have the proxy's rights
 * (D9).
 */
export const trustClasses = ["proven", "unproven", "private", "front-proxy", "impersonate"] as const;
export type TrustClass = (typeof trustClasses)[number];

/**
 * The form that the apiserver reads as a bearer token (k8s.io/apiserver, bearertoken.go). For the apiserver, a request
 * with any other value is anonymous and often gets 403. If a 403 proved such a value, GOAWAYs caused by its sender
 * would hit proven clients.
 */
const bearerForm = /^bearer [^ ]/i;

/** True for a bearer token, also in the field that a browser's websocket has to use (websocket/protocol.go). */
export function isBearer({ role: of, name, value }: Field): boolean {
  if (of === role.authorization) return bearerForm.test(value);
  return name === "sec-websocket-protocol" && value.includes("base64url.bearer.authorization.k8s.io.");
}

/** What is known of a bearer token, by its salted hash; the token itself is not kept. */
export type Bearer = {
  readonly key: string;
  /** Clock reading until which the token counts as proven; 0: not proven. */
  provenUntil: number;
  /** When the token expires by its own claim, in ms since 1970; infinite if the token states no expiry. */
  readonly endsAt: number;
};

/** The bearer token of a request; undefined: anonymous. */
export type Credential = Bearer | undefined;

/** True if this object says that the token is proven. Another object for the same token may know of a later proof. */
export function isProvenAt(credential: Credential, now: number): boolean {
  return credential !== undefined && credential.provenUntil > now;
}

/** The latest token of a connection, kept so that a client that repeats its token costs no hash. */
export type CredentialMemo = { value: string; bearer: Bearer | undefined };

export class Trust {
  readonly #clock: Clock;
  readonly #salt = randomBytes(16).toString("hex");
  readonly #bearers = new Lru<string, Bearer>(rememberedBearers);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  credentialOf(request: RequestHead, memo: CredentialMemo): Credential {
    for (const field of request.fields) {
      if (field.role !== role.authorization) continue;
      if (!bearerForm.test(field.value)) return undefined;
      // The memo lives as long as its client's connection, which may be idle, so no overlong token is kept (A26).
      if (field.value.length > limits.usualHeadBytes) return this.#bearer(field.value);
      if (memo.value !== field.value) {
        memo.bearer = this.#bearer(field.value);
        memo.value = field.value;
      }
      return memo.bearer;
    }
    return undefined;
  }

  classOf(credential: Credential): TrustClass {
    if (credential === undefined) return "unproven";
    return this.#known(credential).provenUntil > this.#clock.now() ? "proven" : "unproven";
  }

  /** Records a backend's response: any status but 401 proves the credential for ten minutes. */
  learn(credential: Credential, status: number): void {
    if (credential === undefined) return;
    const known = this.#known(credential);
    known.provenUntil = status === 401 ? 0 : this.#clock.now() + this.#provenMs(known);
    // Only accepted tokens are kept, so that ten thousand invented tokens cannot evict a valid one (A43).
    if (status !== 401 && !this.#bearers.has(known.key)) this.#bearers.set(known.key, known);
  }

  /**
   * Returns how long an accepted token stays proven. The proof ends with the token's own expiry, so that tokens that
   * expire together cause no 401s on the connections of proven clients. If a token is accepted long after its expiry,
   * the proxy's wall clock is wrong, so the expiry is ignored.
   */
  #provenMs({ endsAt }: Bearer): number {
    const leftMs = endsAt - this.#clock.wall();
    if (leftMs < -bearerLeewayMs) return provenMs;
    return Math.min(provenMs, Math.max(endedBearerMs, leftMs));
  }

  /** Returns the stored object of this token, because a request may hold another object from before the proof. */
  #known(credential: Bearer): Bearer {
    return this.#bearers.get(credential.key) ?? credential;
  }

  #bearer(value: string): Bearer {
    const key = hash("sha256", this.#salt + value);
    const known = this.#bearers.get(key);
    if (known === undefined) {
      // An overlong token is not parsed: no real client has such a token, and parsing costs more than a missed expiry.
      const endsAt = value.length > limits.usualHeadBytes ? undefined : bearerEndsAt(value);
      return { key, provenUntil: 0, endsAt: endsAt ?? Number.POSITIVE_INFINITY };
    }
    this.#bearers.set(key, known);
    return known;
  }
}
