/**
 * Authorizes requests by TokenReview and SubjectAccessReview, as kube-rbac-proxy does. While the cluster answers no
 * reviews, admits a request only if the cached results suffice. Keeps only a salted hash of a token, and sends the
 * token only to the cluster.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { limits } from "../../../base/limits.ts";
import type { Journal } from "../../../events/journal.ts";
import { statusOf } from "../../../kube/status.ts";
import type { Review, Reviewer } from "../../discovery/reviewer.ts";
import { adminLimits } from "../http/limits.ts";
import { jsonReply, type Reply } from "../http/reply.ts";
import { Recent } from "./recent.ts";
import { type Access, accessIn, accessReview, tokenReview, type User, userIn } from "./reviews.ts";

export type AuthorizationParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly reviewer: Pick<Reviewer, "ask">;
  /** A token must be for one of these audiences; empty: the audiences of the apiservers. */
  readonly audiences: readonly string[];
  /**
   * Text before the request's path in a SubjectAccessReview; default: `apiPrefix`. For the metrics port it is "", so
   * that RBAC rules name the path /metrics, as for Kubernetes' own components.
   */
  readonly pathPrefix?: string;
};

/**
 * Prefix of the API's paths in a SubjectAccessReview. Without it, the ClusterRole system:discovery, which allows
 * /api/*, would open the API to every user.
 */
const apiPrefix = "/watchkeeper";

export type AccessRequest = {
  readonly verb: "get" | "post";
  /** Path without the query. The router uses the same text, so it serves exactly what was authorized. */
  readonly path: string;
  /** Value of the Authorization field; undefined if the request has none. */
  readonly authorization: string | undefined;
  readonly address: string;
};

export type Admitted = { readonly username: string };

/** The result of a TokenReview. `user` is undefined if the cluster does not accept the token. */
type TokenResult = { readonly user: User | undefined };

export class Authorization {
  readonly #parts: AuthorizationParts;
  readonly #salt = randomBytes(32);
  readonly #tokens: Recent<TokenResult>;
  readonly #accesses: Recent<Access>;
  readonly #reviewsByAddress = new Map<string, number>();
  readonly #reviewsByUser = new Map<string, number>();
  readonly #openReviews = { TokenReview: 0, SubjectAccessReview: 0 };
  /** Why the latest review failed; "": it succeeded. The same reason twice in succession is journaled once. */
  #lastFailureReason = "";

  constructor(parts: AuthorizationParts) {
    this.#parts = parts;
    const { clock } = parts;
    const most = adminLimits.reviewsKept;
    this.#tokens = new Recent({ clock, most, keepMs: () => adminLimits.tokenReviewedMs });
    this.#accesses = new Recent({ clock, most, keepMs });
  }

  /** Returns the user, or the response that rejects the request: 401, 403, or 503 if the cluster answers no reviews. */
  async admit(request: AccessRequest): Promise<Admitted | Reply> {
    const asked = { ...request, path: `${this.#parts.pathPrefix ?? apiPrefix}${request.path}` };
    const token = tokenIn(asked.authorization);
    if (token === undefined) return refusal(401, "Unauthorized: a bearer token is needed");
    const known = await this.#userOf(token, asked.address);
    if (known instanceof Failure) return refusal(503, known.message);
    const { user } = known;
    if (user === undefined) return refusal(401, "Unauthorized: the cluster does not accept this token");
    const access = await this.#accessOf(user, asked);
    if (access instanceof Failure) return refusal(503, access.message);
    if (access.isAllowed) return { username: user.username };
    return this.#deny(user, asked, access);
  }

  #deny({ username }: User, { verb, path, address }: AccessRequest, { reason }: Access): Reply {
    const may = `User ${JSON.stringify(username)} cannot ${verb} path "${path}"`;
    const message = reason === "" ? may : `${may}: ${reason}`;
    const by = `${username} at ${address}`;
    if (verb === "post")
      this.#parts.journal.write({
        kind: "operation.refused",
        operation: "post",
        target: path.slice((this.#parts.pathPrefix ?? apiPrefix).length),
        by,
        reason: message,
      });
    return refusal(403, message);
  }

  #userOf(token: string, address: string): Promise<TokenResult | Failure> {
    const { audiences } = this.#parts;
    const key = this.#saltedHash(token);
    return this.#tokens.find(key, async () => {
      const ask = (): Promise<ReviewOutcome> => this.#ask(tokenReview(token, audiences));
      const outcome = await limited(this.#reviewsByAddress, address, limits.tokenReviewsPerAddress, ask);
      return outcome instanceof Failure ? outcome : { user: userIn(outcome.answer, audiences) };
    });
  }

  #accessOf(user: User, { verb, path }: AccessRequest): Promise<Access | Failure> {
    const key = this.#saltedHash(JSON.stringify([user, verb, path]));
    const { username } = user;
    return this.#accesses.find(key, async () => {
      // Reviews are limited per user, because a client with a valid token could otherwise flood the cluster with
      // reviews.
      const ask = (): Promise<ReviewOutcome> => this.#ask(accessReview(user, verb, path));
      const outcome = await limited(this.#reviewsByUser, username, limits.reviewsAtOnce / 2, ask);
      return outcome instanceof Failure ? outcome : accessIn(outcome.answer);
    });
  }

  /** Sends a review. Only the journal gets the reason of a failure, because the client may be unauthenticated. */
  async #ask(review: Review): Promise<ReviewOutcome> {
    const { kind } = review;
    if (this.#openReviews[kind] >= limits.reviewsAtOnce) return tooMany();
    this.#openReviews[kind] += 1;
    const outcome = await this.#parts.reviewer.ask(review);
    this.#openReviews[kind] -= 1;
    const complaint = outcome instanceof Failure ? outcome.message : "";
    if (complaint !== this.#lastFailureReason && complaint !== "")
      this.#parts.journal.write({ kind: "review.failed", review: kind, reason: complaint });
    this.#lastFailureReason = complaint;
    if (!(outcome instanceof Failure)) return outcome;
    const message = "The cluster cannot be asked for authorization: see the proxy's log";
    return new Failure(outcome.code, outcome.origin, message);
  }

  #saltedHash(text: string): string {
    return createHmac("sha256", this.#salt).update(text).digest("base64");
  }
}

type ReviewOutcome = { readonly answer: unknown } | Failure;

function keepMs({ isAllowed }: Access): number {
  return isAllowed ? adminLimits.accessAllowedMs : adminLimits.accessDeniedMs;
}

async function limited(
  running: Map<string, number>,
  key: string,
  maximum: number,
  ask: () => Promise<ReviewOutcome>,
): Promise<ReviewOutcome> {
  const others = running.get(key) ?? 0;
  if (others >= maximum) return tooMany();
  running.set(key, others + 1);
  try {
    return await ask();
  } finally {
    const left = (running.get(key) ?? 1) - 1;
    if (left > 0) running.set(key, left);
    else running.delete(key);
  }
}

function tooMany(): Failure {
  return new Failure("overload", "proxy", "Too many reviews are in progress: try again");
}

/** Returns the bearer token of an Authorization field, parsed as Kubernetes does (k8s.io/apiserver, bearertoken.go). */
function tokenIn(field: string | undefined): string | undefined {
  const [, token] = /^ *bearer +(\S+) *$/i.exec(field ?? "") ?? [];
  return token;
}

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  503: "ServiceUnavailable",
};

function refusal(code: number, message: string): Reply {
  return jsonReply(code, statusOf({ message, reason: reasons[code] ?? "Unknown", code }));
}
