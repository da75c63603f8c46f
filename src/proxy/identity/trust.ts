/**
 * Decides which upstream connections a request may share (D2). Pure except for its memory of bearers that a backend
 * accepted recently.
 *
 * One 401 or one anonymous request makes the apiserver send GOAWAY on the whole session (watch.md W7). So requests that
 * may cause that travel on other connections than those of proven clients.
 */
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { type Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { bearerEndsAt } from "./credential-expiry.ts";

/**
 * How long an accepted bearer may share upstream connections, and how many bearers are remembered (a hash and a time
 * each, D2).
 */
export const provenMs = 600_000;
export const rememberedBearers = 10_000;
/**
 * Apiservers accept a JWT for a minute after its expiry (go-jose's leeway). A bearer accepted within that minute
 * stays proven for `endedBearerMs`.
 */
const bearerLeewayMs = 60_000;
export const endedBearerMs = 5000;

/**
 * `front-proxy` and `impersonate` are for clients whose identity the proxy asserts, on upstream connections that carry
 * its own credential for that. No other request may travel there: it would have the proxy's rights (D9).
 */
export const trustClasses = ["proven", "unproven", "private", "front-proxy", "impersonate"] as const;
export type TrustClass = (typeof trustClasses)[number];

/**
 * The form that the apiserver reads as a bearer (k8s.io/apiserver, bearertoken.go). Anything else it answers as
 * anonymous, often with 403: if that counted as proof, the sender's GOAWAYs would hit proven clients.
 */
const bearerForm = /^bearer [^ ]/i;

/** True for a bearer credential, also in the field that browsers' websockets have to use (websocket/protocol.go). */
export function isBearer({ role: of, name, value }: Field): boolean {
  if (of === role.authorization) return bearerForm.test(value);
  return name === "sec-websocket-protocol" && value.includes("base64url.bearer.authorization.k8s.io.");
}

/** A credential by its salted hash; never the credential. */
export type Bearer = {
  readonly key: string;
  /** A clock reading; 0 while it is not proven. */
  provenUntil: number;
  /** When it expires by its own claim, in ms since 1970. */
  readonly endsAt: number;
};

/** The credential of a request, with which the status of the response is reported; undefined is anonymous. */
export type Credential = Bearer | undefined;

/** True only if it is proven. Reads no shared memory, so a bearer proven on another socket may return false. */
export function isProvenAt(credential: Credential, now: number): boolean {
  return credential !== undefined && credential.provenUntil > now;
}

/** A socket's last credential: a client that repeats its token costs one comparison, not one hash. */
export type CredentialMemo = { value: string; bearer: Bearer | undefined };

export class Trust {
  readonly #clock: Clock;
  readonly #salt = randomBytes(16).toString("hex");
  /** Oldest first: a Map keeps the order of insertion. */
  readonly #bearers = new Lru<string, Bearer>(rememberedBearers);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  credentialOf(request: RequestHead, memo: CredentialMemo): Credential {
    for (const field of request.fields) {
      if (field.role !== role.authorization) continue;
      if (!bearerForm.test(field.value)) return undefined;
      // The memo lives as long as its client's connection, which may be idle: an overlong token is not kept (A26).
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

  /** A backend answered: any status but 401 proves the credential for ten minutes. */
  learn(credential: Credential, status: number): void {
    if (credential === undefined) return;
    const known = this.#known(credential);
    known.provenUntil = status === 401 ? 0 : this.#clock.now() + this.#provenMs(known);
    // Only accepted bearers are kept: ten thousand invented tokens must not evict a valid one (A43).
    if (status !== 401 && !this.#bearers.has(known.key)) this.#bearers.set(known.key, known);
  }

  /**
   * A bearer is unproven from its own expiry on, so that tokens that expire together cause no 401s on the connections of
   * proven clients. A bearer that is accepted long after its expiry shows that the proxy's wall clock is wrong, not the
   * bearer.
   */
  #provenMs({ endsAt }: Bearer): number {
    const leftMs = endsAt - this.#clock.wall();
    if (leftMs < -bearerLeewayMs) return provenMs;
    return Math.min(provenMs, Math.max(endedBearerMs, leftMs));
  }

  /** Requests from before it was accepted may hold another object of the same key: the stored one counts for all of them. */
  #known(credential: Bearer): Bearer {
    return this.#bearers.get(credential.key) ?? credential;
  }

  #bearer(value: string): Bearer {
    const key = hash("sha256", this.#salt + value);
    const known = this.#bearers.get(key);
    if (known === undefined) {
      // No real client has so long a token: parsing it costs more than a missed expiry.
      const endsAt = value.length > limits.usualHeadBytes ? undefined : bearerEndsAt(value);
      return { key, provenUntil: 0, endsAt: endsAt ?? Number.POSITIVE_INFINITY };
    }
    this.#bearers.set(key, known);
    return known;
  }
}
