/**
 * Decides which upstream connections a request may share (D2), and remembers the bearer tokens that a backend accepted
 * recently (*proven* tokens).
 *
 * After a single 401 or anonymous request, the apiserver sends GOAWAY on the whole session (watch.md W7). So requests
 * that may cause a GOAWAY do not share connections with clients whose tokens are proven.
 */
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { type Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { AssertedTrust } from "./asserted-identity.ts";
import { bearerEndsAt } from "./credential-expiry.ts";

/** Ms for which a bearer token counts as proven after a backend has accepted it (D2). */
export const provenMs = 600_000;
/** Maximum number of accepted tokens that are remembered, each as a hash and a time. */
export const rememberedBearers = 10_000;
/**
 * Apiservers accept a JWT for this many ms after its expiry (go-jose). A token that is accepted in that time stays
 * proven only for `endedBearerMs`, not `provenMs`.
 */
const bearerLeewayMs = 60_000;
export const endedBearerMs = 5000;

/**
 * proven: requests with a token that a backend has accepted. unproven: requests with another token, or without one.
 * private: the requests of one client, on connections of its own. front-proxy and impersonate: requests of clients
 * whose identity the proxy asserts. Their upstream connections carry the proxy's own credential, so any other request
 * on such a connection would have the proxy's rights (D9).
 */
export const trustClasses = ["proven", "unproven", "private", "front-proxy", "impersonate"] as const;
export type TrustClass = (typeof trustClasses)[number];

/** True for the connections that carry the proxy's own credential. */
export function isAsserted(trust: TrustClass | "rejected"): trust is AssertedTrust {
  return trust === "front-proxy" || trust === "impersonate";
}

/**
 * A form that the apiserver always reads as a bearer token (k8s.io/apiserver, bearertoken.go). With some other values,
 * such as `Bearer` and a no-break space, which Go trims, the request is anonymous and often gets 200 or 403. Such a
 * value must not become proven: its sender's requests cause GOAWAYs, which would affect clients with proven tokens.
 */
const bearerForm = /^bearer [!-~]/i;

/** Apart from 2xx, the statuses that the apiserver sends only after it has authenticated the request. */
const authenticated: readonly number[] = [403, 404, 409, 422];

/**
 * Returns true if the response shows that the apiserver has accepted the request's token, and false if it has refused
 * it. Undefined: the response shows neither.
 *
 * The apiserver answers some requests before it authenticates them (k8s.io/apiserver, DefaultBuildHandlerChain): with
 * 400 if `timeout` is invalid, with 204 a CORS preflight, with 429 or 503 while it shuts down, with 500 or 504 after an
 * error. `answeredBy`: who has written the response. Another server may have chosen any status: the application behind
 * a proxy subresource, the kubelet, an aggregated API's server, or a webhook that refuses a write. With its own 401,
 * the apiserver also closes the connection (`isGoing`), which no other server can make it do.
 */
export function isTokenAccepted(
  status: number,
  answeredBy: "apiserver" | "webhook" | "other",
  isGoing: boolean,
): boolean | undefined {
  if (status === 401) return answeredBy === "apiserver" || isGoing ? false : undefined;
  const isAuthenticated = (status >= 200 && status < 300) || authenticated.includes(status);
  return isAuthenticated && answeredBy !== "other" ? true : undefined;
}

/**
 * True if the field carries a bearer token: Authorization, or the field in which browsers send the token of a websocket
 * (websocket/protocol.go).
 */
export function isBearer({ role: of, name, value }: Field): boolean {
  if (of === role.authorization) return bearerForm.test(value);
  return name === "sec-websocket-protocol" && value.includes("base64url.bearer.authorization.k8s.io.");
}

/** What the proxy knows of a bearer token. `key`: a salted hash; the token itself is not kept. */
export type Bearer = {
  readonly key: string;
  /** Clock reading until which the token counts as proven; 0: not proven. */
  provenUntil: number;
  /** When the token expires by its own claim, in ms since 1970; infinite if the token states no expiry. */
  readonly endsAt: number;
};

/** The bearer token of a request; undefined: anonymous. */
export type Credential = Bearer | undefined;

/**
 * True if this object shows that a backend has accepted the token recently. The token may have a second object, in
 * which a later response is recorded.
 */
export function isProvenAt(credential: Credential, now: number): boolean {
  return credential !== undefined && credential.provenUntil > now;
}

/**
 * The latest bearer token of a connection. Kept, because most requests repeat the token, which is then not hashed
 * again.
 */
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
      // The memo lives as long as the connection, which may be idle, so no overlong token is kept in it (A26).
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

  /**
   * Records what a response has shown (`isTokenAccepted`), and returns it. An accepted token counts as proven for up to
   * ten minutes.
   */
  learn(credential: Credential, isAccepted: boolean | undefined): boolean | undefined {
    if (credential === undefined || isAccepted === undefined) return isAccepted;
    const known = this.#known(credential);
    known.provenUntil = isAccepted ? this.#clock.now() + this.#provenMs(known) : 0;
    // Only accepted tokens are stored, so that ten thousand invented tokens cannot displace a valid one (A43).
    if (isAccepted && !this.#bearers.has(known.key)) this.#bearers.set(known.key, known);
    return isAccepted;
  }

  /**
   * Returns for how many ms an accepted token stays proven: at most until its own expiry. Otherwise tokens that expire
   * together would cause 401s on the connections for proven tokens. If a token is accepted long after its expiry, the
   * proxy's wall clock must be wrong, so the expiry is ignored.
   */
  #provenMs({ endsAt }: Bearer): number {
    const leftMs = endsAt - this.#clock.wall();
    if (leftMs < -bearerLeewayMs) return provenMs;
    return Math.min(provenMs, Math.max(endedBearerMs, leftMs));
  }

  /** Returns the stored object of this token. A request may hold an older one, from before the token was proven. */
  #known(credential: Bearer): Bearer {
    return this.#bearers.get(credential.key) ?? credential;
  }

  #bearer(value: string): Bearer {
    const key = hash("sha256", this.#salt + value);
    const known = this.#bearers.get(key);
    if (known === undefined) {
      // An overlong token is not parsed, because no real client has one and parsing it is expensive. It has no known expiry.
      const endsAt = value.length > limits.usualHeadBytes ? undefined : bearerEndsAt(value);
      return { key, provenUntil: 0, endsAt: endsAt ?? Number.POSITIVE_INFINITY };
    }
    this.#bearers.set(key, known);
    return known;
  }
}
