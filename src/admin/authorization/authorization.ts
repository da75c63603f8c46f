/**
 * Authorizes requests to the API by TokenReview and SubjectAccessReview, as the apiserver's delegated authentication and
 * kube-rbac-proxy do. While no cluster can be asked, every request is refused. A token is kept only as a salted hash, and
 * sent only to the cluster.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Review, Reviewer } from "../../discovery/reviewer.ts";
import type { Journal } from "../../events/journal.ts";
import { statusOf } from "../../kube/status.ts";
import { adminLimits } from "../http/limits.ts";
import { jsonReply, type Reply } from "../http/reply.ts";
import { Recent } from "./recent.ts";
import { type Access, accessIn, accessReview, tokenReview, type User, userIn } from "./reviews.ts";

export type AuthorizationParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly reviewer: Pick<Reviewer, "ask">;
  /** Audiences of which a token must have one; none: the apiservers' own. */
  readonly audiences: readonly string[];
};

export type AccessRequest = {
  readonly verb: "get" | "post";
  /** The request's path without its query: the same one that is routed. */
  readonly path: string;
  /** The request's Authorization field. */
  readonly authorization: string | undefined;
  /** The client's address. */
  readonly address: string;
};

/** The authenticated user. */
export type Admitted = { readonly username: string };

/** The result of a token review; undefined: not authenticated. */
type Known = { readonly user: User | undefined };

export class Authorization {
  readonly #parts: AuthorizationParts;
  readonly #salt = randomBytes(32);
  readonly #tokens: Recent<Known>;
  readonly #accesses: Recent<Access>;
  /** Reviews in flight: of tokens by client address, of accesses by user. */
  readonly #guesses = new Map<string, number>();
  readonly #askers = new Map<string, number>();
  /** Reviews in flight, by kind; beyond the limit a review fails. */
  readonly #running = { TokenReview: 0, SubjectAccessReview: 0 };
  /** Why no cluster can be asked, as last written to the journal. */
  #complaint = "";

  constructor(parts: AuthorizationParts) {
    this.#parts = parts;
    const { clock } = parts;
    const most = adminLimits.reviewsKept;
    this.#tokens = new Recent({ clock, most, keepMs: () => adminLimits.tokenReviewedMs });
    this.#accesses = new Recent({ clock, most, keepMs });
  }

  /** Returns the user, or a refusal: 401, 403, or 503 while no cluster can be asked. */
  async admit(asked: AccessRequest): Promise<Admitted | Reply> {
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
    const may = `User ${JSON.stringify(username)} cannot ${verb} path "/watchkeeper${path}"`;
    const message = reason === "" ? may : `${may}: ${reason}`;
    const by = `${username} at ${address}`;
    if (verb === "post")
      this.#parts.journal.write({
        kind: "operation.refused",
        operation: "post",
        target: path,
        by,
        reason: message,
      });
    return refusal(403, message);
  }

  #userOf(token: string, address: string): Promise<Known | Failure> {
    const { audiences } = this.#parts;
    const key = this.#hash(token);
    return this.#tokens.find(key, async () => {
      const ask = (): Promise<Answer> => this.#ask(tokenReview(token, audiences));
      const outcome = await among(this.#guesses, address, limits.tokenReviewsPerAddress, ask);
      return outcome instanceof Failure ? outcome : { user: userIn(outcome.answer, audiences) };
    });
  }

  #accessOf(user: User, { verb, path }: AccessRequest): Promise<Access | Failure> {
    const key = this.#hash(JSON.stringify([user, verb, path]));
    const { username } = user;
    return this.#accesses.find(key, async () => {
      // Limited by user: any valid token would otherwise be enough to flood the cluster with reviews of random paths.
      const ask = (): Promise<Answer> => this.#ask(accessReview(user, verb, path));
      const outcome = await among(this.#askers, username, limits.reviewsAtOnce / 2, ask);
      return outcome instanceof Failure ? outcome : accessIn(outcome.answer);
    });
  }

  /** The reason of a failure goes to the journal only: the client may be unauthenticated. */
  async #ask(review: Review): Promise<Answer> {
    const { kind } = review;
    if (this.#running[kind] >= limits.reviewsAtOnce) return tooMany();
    this.#running[kind] += 1;
    const outcome = await this.#parts.reviewer.ask(review);
    this.#running[kind] -= 1;
    const complaint = outcome instanceof Failure ? outcome.message : "";
    if (complaint !== this.#complaint && complaint !== "")
      this.#parts.journal.write({ kind: "review.failed", review: kind, reason: complaint });
    this.#complaint = complaint;
    if (!(outcome instanceof Failure)) return outcome;
    const message = "The cluster cannot be asked for authorization: see the proxy's log";
    return new Failure(outcome.code, outcome.origin, message);
  }

  /** The salt prevents an offline search for tokens by a reader of this process's memory. */
  #hash(text: string): string {
    return createHmac("sha256", this.#salt).update(text).digest("base64");
  }
}

type Answer = { readonly answer: unknown } | Failure;

function keepMs({ isAllowed }: Access): number {
  return isAllowed ? adminLimits.accessAllowedMs : adminLimits.accessDeniedMs;
}

/** Runs `ask`, unless `most` reviews of this key are in flight. */
async function among(
  running: Map<string, number>,
  whose: string,
  most: number,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const others = running.get(whose) ?? 0;
  if (others >= most) return tooMany();
  running.set(whose, others + 1);
  try {
    return await ask();
  } finally {
    const left = (running.get(whose) ?? 1) - 1;
    if (left > 0) running.set(whose, left);
    else running.delete(whose);
  }
}

function tooMany(): Failure {
  return new Failure("overload", "proxy", "Too many reviews are in progress: try again");
}

/** Parses the field as Kubernetes does (k8s.io/apiserver, bearertoken.go). */
function tokenIn(field: string | undefined): string | undefined {
  const [, token] = /^ *bearer +(\S+) *$/i.exec(field ?? "") ?? [];
  return token;
}

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  503: "ServiceUnavailable",
};

/** A Status like an apiserver's. */
function refusal(code: number, message: string): Reply {
  return jsonReply(code, statusOf({ message, reason: reasons[code] ?? "Unknown", code }));
}
