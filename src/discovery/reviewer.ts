/**
 * Has a cluster judge: whose token is this, may they do that? The question is made and the answer read by whoever asks
 * (admin/reviews.ts); here is only how it gets there, by a pod's service account or by a kubeconfig.
 */
import { wallClock } from "../base/clock.ts";
import { Failure, failureFrom } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { accountDirectory, accountToken, requestAsAccount, serviceUrl } from "./account-request.ts";
import type { Question } from "./discovered.ts";
import { childFile, KubernetesChild } from "./kubernetes-child.ts";
import { discoveryLimits } from "./limits.ts";

/** An object that is created to be answered at once, and is kept by nobody: TokenReview, SubjectAccessReview. */
export type Review = {
  readonly kind: "TokenReview" | "SubjectAccessReview";
  /** Where it is posted. */
  readonly path: string;
  readonly body: object;
};

export type Reviewer = {
  /** The object with its answer, or why there is none: within `discoveryLimits.reviewMs`, and without what was asked in it. */
  ask(review: Review): Promise<{ readonly answer: unknown } | Failure>;
  stop(): void;
};

/** Read anew each time; `servers` are tried in turn. */
type Access = () => Pick<Question, "servers" | "caFile" | "serverName">;

/** What the child is asked. */
export type ReviewQuestion = Omit<Question, "from"> & { readonly review: Review };

export function reviewerOf(kubeconfigFile: string | undefined, access: Access): Reviewer {
  return kubeconfigFile === undefined
    ? new AccountReviewer(access)
    : new ChildReviewer(kubeconfigFile, access);
}

/** As a pod: the service account needs the ClusterRole system:auth-delegator. */
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

/** With a kubeconfig, in a process of its own. */
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
    // One that is slow to start is left alone: its next question finds it there.
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

/** Those that are known, as far as there is time; else where the credentials themselves lead. */
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

/** Reads the child's message: a package's object may have got in there, so each field is looked at. */
function answerIn(message: unknown, id: number): { readonly answer: unknown } | Failure | undefined {
  if (typeof message !== "object" || message === null || !("id" in message) || message.id !== id)
    return undefined;
  if ("answer" in message) return { answer: message.answer };
  const why = "failure" in message ? String(message.failure).slice(0, limits.logFieldChars) : "no answer";
  return new Failure("backend-refused", "backend", why);
}
