/** Queries Kubernetes for its apiservers with a kubeconfig, through a child process (kubernetes-child.ts). */
import type { Failure } from "../base/failure.ts";
import { type Found, foundInReply, type Question } from "./discovered.ts";
import type { Source } from "./discovery.ts";
import { childFile, KubernetesChild } from "./kubernetes-child.ts";

export class ChildSource implements Source {
  readonly expires = true;
  readonly #question: () => Omit<Question, "id">;
  readonly #child: KubernetesChild;

  constructor(question: () => Omit<Question, "id">, file = childFile) {
    this.#question = question;
    this.#child = new KubernetesChild("discovery", file);
  }

  get from(): string {
    return this.#question().from;
  }

  ask(): Promise<readonly Found[] | Failure> {
    return this.#child.ask(this.#question(), foundInReply);
  }

  /** Ends the child, which fails the pending question. The next lookup starts another. */
  giveUp(): void {
    this.#child.kill();
  }

  stop(): void {
    this.#child.kill();
  }
}
