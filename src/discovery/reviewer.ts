/**
 * Sends token and access reviews to a cluster for admin/authorization/reviews.ts. A pod's service account needs the
 * ClusterRole system:auth-delegator.
 */
import { wallClock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { transportOf } from "./kubernetes-child.ts";
import { discoveryLimits } from "./limits.ts";
import { type Access, firstAnswer, type Transport } from "./transport.ts";

/** An object that is posted only for the apiserver's answer, and never stored. */
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

  /**
   * Returns the object with its status, or a Failure, within `reviewChildMs`. The message contains nothing of the
   * review.
   */
  ask({ path, body }: Review): Promise<{ readonly answer: unknown } | Failure> {
    // The server that the credentials name is asked only if few others are known.
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
