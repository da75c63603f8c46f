/**
 * Which upstream connections may a request share (D2)? Pure but for what it remembers: bearers that a backend took lately.
 *
 * One 401 or one anonymous request makes the apiserver send GOAWAY on the whole session (watch.md W7), so those who
 * could cause that travel apart from those who have shown that they do not.
 */
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { type Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { bearerEndsAt } from "./credential-expiry.ts";

/**
 * `front-proxy` and `impersonate` are those for whom we vouch, each on upstream connections that carry our own credential for it: nobody
 * else may ever travel there, or they would be us (D9).
 */
export const trustClasses = ["proven", "unproven", "private", "front-proxy", "impersonate"] as const;
export type TrustClass = (typeof trustClasses)[number];

/**
 * What the apiserver reads as a bearer (k8s.io/apiserver, bearertoken.go). Anything else it answers as anonymous, often
 * with 403: taken for a proof, that would let the sender's GOAWAYs hit the proven.
 */
const bearerForm = /^bearer [^ ]/i;

/** A credential of that kind, also in the place where browsers' websockets have to put it (websocket/protocol.go). */
export function isBearer({ role: of, name, value }: Field): boolean {
  if (of === role.authorization) return bearerForm.test(value);
  return name === "sec-websocket-protocol" && value.includes("base64url.bearer.authorization.k8s.io.");
}

/** A credential by its salted hash; never the credential. */
export type Bearer = {
  readonly key: string;
  /** A clock reading; 0 while it is not proven. */
  provenUntil: number;
  /** When it ends by its own word, in ms since 1970. */
  readonly endsAt: number;
};

/** What serve remembers of a request's credential, to report the answer's status; undefined is anonymous. */
export type Credential = Bearer | undefined;

/** True only if it is proven; without a look at what is remembered, so that one proven on another socket may not be. */
export function isProvenAt(credential: Credential, now: number): boolean {
  return credential !== undefined && credential.provenUntil > now;
}

/** A socket's last credential: a client that repeats its token costs one comparison, not one hash. */
export type CredentialMemo = { value: string; bearer: Bearer | undefined };

export class Trust {
  readonly #clock: Clock;
  readonly #salt = randomBytes(16).toString("hex");
  /** Oldest first: a Map keeps the order of insertion. */
  readonly #bearers = new Lru<string, Bearer>(limits.bearers);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  credentialOf(request: RequestHead, memo: CredentialMemo): Credential {
    for (const field of request.fields) {
      if (field.role !== role.authorization) continue;
      if (!bearerForm.test(field.value)) return undefined;
      // It lives as long as its client's connection, which may be idle: of an endless one nothing is kept (A26).
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

  /** A backend answered: anything but 401 proves the credential for ten minutes. */
  learn(credential: Credential, status: number): void {
    if (credential === undefined) return;
    const known = this.#known(credential);
    known.provenUntil = status === 401 ? 0 : this.#clock.now() + this.#provenMs(known);
    // Only what was accepted: ten thousand invented tokens must not push out one that is good (A43).
    if (status !== 401 && !this.#bearers.has(known.key)) this.#bearers.set(known.key, known);
  }

  /**
   * A bearer is unproven from its own end on, so that tokens that end together bring no 401s upon the connections of the
   * proven. One that is accepted long after its end shows that our wall clock is wrong, not the bearer.
   */
  #provenMs({ endsAt }: Bearer): number {
    const leftMs = endsAt - this.#clock.wall();
    if (leftMs < -limits.bearerLeewayMs) return limits.provenMs;
    return Math.min(limits.provenMs, Math.max(limits.endedBearerMs, leftMs));
  }

  /** Requests that came before it was taken may hold another of the same key: what is remembered goes for all of them. */
  #known(credential: Bearer): Bearer {
    return this.#bearers.get(credential.key) ?? credential;
  }

  #bearer(value: string): Bearer {
    const key = hash("sha256", this.#salt + value);
    const known = this.#bearers.get(key);
    if (known === undefined) {
      // A token that long is nobody's: to read what it says costs more than to be surprised by its end.
      const endsAt = value.length > limits.usualHeadBytes ? undefined : bearerEndsAt(value);
      return { key, provenUntil: 0, endsAt: endsAt ?? Number.POSITIVE_INFINITY };
    }
    this.#bearers.set(key, known);
    return known;
  }
}
