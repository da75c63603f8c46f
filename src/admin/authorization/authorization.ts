/**
 * Who may use the API: whoever a cluster knows by their token and lets, as the apiserver's own delegated authentication
 * and kube-rbac-proxy ask. Where it cannot be asked nobody may. A token is kept as a salted hash, and told to nobody else.
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
  readonly reviewer: Reviewer;
  /** One of which a token must be for; none: the apiservers' own. */
  readonly audiences: readonly string[];
};

export type Asked = {
  readonly verb: "get" | "post";
  /** As it was asked for, without its query: what is routed is what is judged. */
  readonly path: string;
  /** The field of the request. */
  readonly authorization: string | undefined;
  /** The socket's other end. */
  readonly address: string;
};

/** Whose request it is. */
export type Admitted = { readonly username: string };

/** Nobody, as far as the cluster knows. */
type Known = { readonly user: User | undefined };

export class Authorization {
  readonly #parts: AuthorizationParts;
  readonly #salt = randomBytes(32);
  readonly #tokens: Recent<Known>;
  readonly #accesses: Recent<Access>;
  /** Reviews under way: of tokens by the address that they came from, of accesses by the user. */
  readonly #guesses = new Map<string, number>();
  readonly #askers = new Map<string, number>();
  /** Reviews under way, of each kind: what is refused for them is none. */
  readonly #running = { TokenReview: 0, SubjectAccessReview: 0 };
  /** Why the cluster cannot be asked, as the journal knows it. */
  #complaint = "";

  constructor(parts: AuthorizationParts) {
    this.#parts = parts;
    const { clock } = parts;
    const most = adminLimits.reviewsKept;
    this.#tokens = new Recent({ clock, most, keepMs: () => adminLimits.tokenReviewedMs });
    this.#accesses = new Recent({ clock, most, keepMs });
  }

  /** Who asks, or what they are answered instead: 401, 403, or 503 while nobody can say. */
  async admit(asked: Asked): Promise<Admitted | Reply> {
    const token = tokenIn(asked.authorization);
    if (token === undefined) return refusal(401, "Unauthorized: a bearer token is needed");
    const known = await this.#userOf(token, asked.address);
    if (known instanceof Failure) return refusal(503, known.message);
    const { user } = known;
    if (user === undefined) return refusal(401, "Unauthorized: the cluster does not know this token");
    const access = await this.#accessOf(user, asked);
    if (access instanceof Failure) return refusal(503, access.message);
    if (access.isAllowed) return { username: user.username };
    return this.#deny(user, asked, access);
  }

  #deny({ username }: User, { verb, path, address }: Asked, { reason }: Access): Reply {
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

  #accessOf(user: User, { verb, path }: Asked): Promise<Access | Failure> {
    const key = this.#hash(JSON.stringify([user, verb, path]));
    const { username } = user;
    return this.#accesses.find(key, async () => {
      // Any token of the cluster's is enough to ask for one path after another.
      const ask = (): Promise<Answer> => this.#ask(accessReview(user, verb, path));
      const outcome = await among(this.#askers, username, limits.reviewsAtOnce / 2, ask);
      return outcome instanceof Failure ? outcome : accessIn(outcome.answer);
    });
  }

  /** Why it could not be asked is for the operator: whoever asks may be anybody. */
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
    const message = "The cluster cannot be asked who you are and what you may: the proxy's log says why";
    return new Failure(outcome.code, outcome.origin, message);
  }

  /** Without the salt whoever sees the memory could try tokens that they have. */
  #hash(text: string): string {
    return createHmac("sha256", this.#salt).update(text).digest("base64");
  }
}

type Answer = { readonly answer: unknown } | Failure;

function keepMs({ isAllowed }: Access): number {
  return isAllowed ? adminLimits.accessAllowedMs : adminLimits.accessDeniedMs;
}

/** One more of theirs, unless so many are under way. */
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
  return new Failure("overload", "proxy", "Too many ask at once who they are: try again");
}

/** As Kubernetes reads it (k8s.io/apiserver, bearertoken.go). */
function tokenIn(field: string | undefined): string | undefined {
  const [, token] = /^ *bearer +(\S+) *$/i.exec(field ?? "") ?? [];
  return token;
}

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  503: "ServiceUnavailable",
};

/** As an apiserver would say it. */
function refusal(code: number, message: string): Reply {
  return jsonReply(code, statusOf({ message, reason: reasons[code] ?? "Unknown", code }));
}
