/**
 * Sends TokenReviews and SubjectAccessReviews to a cluster for admin/authorization/reviews.ts. A pod's service account
 * needs the ClusterRole system:auth-delegator for them.
 */
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { transportOf } from "./kubernetes-child.ts";
import { discoveryLimits } from "./limits.ts";
import { type Access, firstAnswer, type Transport } from "./transport.ts";

/** An object that the proxy posts only to get the apiserver's answer. The apiserver does not store it. */
export type Review = {
  readonly kind: "TokenReview" | "SubjectAccessReview";
  readonly path: string;
  readonly body: object;
};

export function reviewerOf(kubeconfigFile: string | undefined, access: () => Access): Reviewer {
  return new Reviewer(transportOf(kubeconfigFile, access, "review"), access);
}

export class Reviewer {
  readonly #transport: Transport;
  readonly #access: () => Access;

  constructor(transport: Transport, access: () => Access) {
    this.#transport = transport;
    this.#access = access;
  }

  /** Returns the answer or a Failure within `reviewChildMs`. A Failure's message contains no token. */
  ask({ path, body }: Review): Promise<{ readonly answer: unknown } | Failure> {
    // The apiservers in use are asked first, then the server that the credentials name.
    const servers = [...this.#access().servers, this.#transport.own].slice(0, discoveryLimits.reviewServers);
    const request = { path, body, timeoutMs: discoveryLimits.reviewMs / discoveryLimits.reviewServers };
    const late = Promise.withResolvers<Failure>();
    const stopTimer = wallClock.after(discoveryLimits.reviewChildMs, () =>
      late.resolve(new Failure("backend-lost", "proxy", `no answer in ${discoveryLimits.reviewChildMs} ms`)),
    );
    const answered = firstAnswer(this.#transport, servers, request, (answer) => ({ answer }));
    return Promise.race([answered, late.promise]).finally(stopTimer);
  }

  stop(): void {
    this.#transport.abort();
  }
}
