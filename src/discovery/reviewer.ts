/**
 * Sends token and access reviews to a cluster. The caller (admin/reviews.ts) creates the review and reads its answer;
 * this file transports it, as a pod's service account or with a kubeconfig.
 */
import { wallClock } from "../base/clock.ts";
import { Failure, failureFrom } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { accountDirectory, accountToken, requestAsAccount, serviceUrl } from "./account-request.ts";
import type { Question } from "./discovered.ts";
import { childFile, KubernetesChild } from "./kubernetes-child.ts";
import { discoveryLimits } from "./limits.ts";

/** An object that is created only for its response and never stored: TokenReview, SubjectAccessReview. */
export type Review = {
  readonly kind: "TokenReview" | "SubjectAccessReview";
  /** The path that it is posted to. */
  readonly path: string;
  readonly body: object;
};

export type Reviewer = {
  /**
   * Returns the object with its status, or why there is none, within `discoveryLimits.reviewMs`. The reason does not
   * contain the review.
   */
  ask(review: Review): Promise<{ readonly answer: unknown } | Failure>;
  stop(): void;
};

/** Read for each review; `servers` are tried in turn. */
type Access = () => Pick<Question, "servers" | "caFile" | "serverName">;

/** The child's input. */
export type ReviewQuestion = Omit<Question, "from"> & { readonly review: Review };

export function reviewerOf(kubeconfigFile: string | undefined, access: Access): Reviewer {
  return kubeconfigFile === undefined
    ? new AccountReviewer(access)
    : new ChildReviewer(kubeconfigFile, access);
}

/** Sends reviews as a pod: the service account needs the ClusterRole system:auth-delegator. */
export class AccountReviewer implements Reviewer {
  readonly #access: Access;
  readonly #directory: string;
  readonly #end = new AbortController();

  constructor(access: Access, directory = accountDirectory) {
    this.#access = access;
    this.#directory = directory;
  }

  async ask({ path, body }: Review): Promise<{ readonly answer: unknown } | Failure> {
    const access = this.#access();
    const token = accountToken(this.#directory);
    if (token instanceof Failure) return token;
    const { signal } = this.#end;
    const ask = {
      access,
      token,
      signal,
      body: JSON.stringify(body),
      patienceMs: discoveryLimits.reviewMs / discoveryLimits.reviewServers,
    };
    const failures: string[] = [];
    for (const server of serversIn(access.servers, serviceUrl())) {
      const text = await requestAsAccount(`${server}${path}`, ask).catch((reason: unknown) =>
        failureFrom(reason, "backend"),
      );
      const answer = text instanceof Failure ? text : parsed(text);
      if (!(answer instanceof Failure)) return answer;
      failures.push(`${server}: ${answer.message}`);
    }
    return new Failure("backend-refused", "backend", failures.join("; "));
  }

  stop(): void {
    this.#end.abort();
  }
}

/** Sends reviews with a kubeconfig, in a child process. */
export class ChildReviewer implements Reviewer {
  readonly #kubeconfigFile: string;
  readonly #access: Access;
  readonly #child: KubernetesChild;

  constructor(kubeconfigFile: string, access: Access, file = childFile) {
    this.#kubeconfigFile = kubeconfigFile;
    this.#access = access;
    this.#child = new KubernetesChild("review", file);
  }

  async ask(review: Review): Promise<{ readonly answer: unknown } | Failure> {
    const { servers, caFile, serverName } = this.#access();
    const question: Omit<ReviewQuestion, "id"> = {
      review,
      kubeconfigFile: this.#kubeconfigFile,
      servers: servers.slice(0, discoveryLimits.reviewServers),
      caFile,
      serverName,
    };
    // A child that is slow to start is kept, and serves the next review.
    const stopKill = wallClock.after(discoveryLimits.reviewHungMs, () => this.#child.kill());
    const late = Promise.withResolvers<Failure>();
    const stopTimer = wallClock.after(discoveryLimits.reviewChildMs, () =>
      late.resolve(new Failure("backend-lost", "proxy", `no answer in ${discoveryLimits.reviewChildMs} ms`)),
    );
    const answered = this.#child.ask(question, answerIn).finally(stopKill);
    return Promise.race([answered, late.promise]).finally(stopTimer);
  }

  stop(): void {
    this.#child.kill();
  }
}

/** The known servers, as many as there is time for; otherwise the server of the credentials themselves. */
function serversIn(known: readonly string[], own: string): readonly string[] {
  return [...known, own].slice(0, discoveryLimits.reviewServers);
}

function parsed(text: string): { readonly answer: unknown } | Failure {
  try {
    return { answer: JSON.parse(text) };
  } catch {
    return new Failure("backend-protocol", "backend", "answered with no JSON");
  }
}

/** Parses the child's message. Values from a package may have reached it, so each field is checked. */
function answerIn(message: unknown, id: number): { readonly answer: unknown } | Failure | undefined {
  if (typeof message !== "object" || message === null || !("id" in message) || message.id !== id)
    return undefined;
  if ("answer" in message) return { answer: message.answer };
  const why = "failure" in message ? String(message.failure).slice(0, limits.logFieldChars) : "no answer";
  return new Failure("backend-refused", "backend", why);
}
