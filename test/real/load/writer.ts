/** Writes of several kinds at a steady rate, to an apiserver that has no fault at the moment. */
import type { Random } from "../../support/random.ts";
import type { Server } from "../rig/ask.ts";
import { Client, type Question } from "./client.ts";

/**
 * Number of objects in each namespace that are changed but never deleted, because some watches select one of them by
 * name.
 */
const steadyCount = 20;
/**
 * Number of shards. An object's shard is in its label and in its name, so that etcd's keys show which objects a label
 * selector selects.
 */
const shards = 4;

/** The label "side" of an object changes, so that the object enters and leaves the selection of some watches. */
function body(name: string, count: number, side: "a" | "b" = "a"): object {
  const shard = /-s(\d)$/.exec(name)?.[1] ?? "0";
  const data = { count: String(count), filler: "x".repeat(400) };
  return { metadata: { name, labels: { shard, side } }, data };
}

export class Writer {
  readonly #namespaces: readonly string[];
  readonly #random: Random;
  #client: Client;
  #timer: ReturnType<typeof setInterval> | undefined;
  #count = 0;
  /** Objects that were created and not yet deleted, the oldest first. It is deleted next. */
  readonly #passing: { readonly namespace: string; readonly name: string }[] = [];
  failed = 0;

  constructor(server: Server, namespaces: readonly string[], random: Random) {
    this.#client = new Client(server);
    this.#namespaces = namespaces;
    this.#random = random;
  }

  /** Creates the namespaces, and in each the objects that are changed later. */
  async fill(): Promise<void> {
    for (const namespace of this.#namespaces) {
      await this.#must({
        method: "POST",
        path: "/api/v1/namespaces",
        body: { metadata: { name: namespace } },
      });
      for (let number = 0; number < steadyCount; number++) {
        const path = `/api/v1/namespaces/${namespace}/configmaps`;
        await this.#must({ method: "POST", path, body: body(this.#steady(number), 0) });
      }
    }
  }

  #steady(number: number): string {
    return `thing-${number}-s${number % shards}`;
  }

  async #must(question: Question): Promise<void> {
    const { status, why } = await this.#client.ask(question);
    if (status !== 201) throw new Error(`${question.path} got ${status} ${why}`);
  }

  start(perSecond: number): void {
    this.#timer = setInterval(() => void this.#write(), 1_000 / perSecond);
  }

  /** Sends the writes to this apiserver from now on. */
  use(server: Server): void {
    this.#client.close();
    this.#client = new Client(server);
  }

  async #write(): Promise<void> {
    const { ending, status } = await this.#client.ask(this.#next(), 5_000);
    if (ending !== "whole" || status >= 400) this.failed++;
  }

  /**
   * Returns the next write. Of ten writes, six update an object, one creates an object, one deletes one, and two create
   * Kubernetes Events.
   */
  #next(): Question {
    const number = this.#count++;
    const namespace = this.#random.pick(this.#namespaces as [string, ...string[]]);
    const path = `/api/v1/namespaces/${namespace}`;
    const side = this.#random.pick(["a", "b"] as const);
    const kind = number % 10;
    if (kind === 6) {
      const name = `passing-${number}-s${number % shards}`;
      this.#passing.push({ namespace, name });
      return { method: "POST", path: `${path}/configmaps`, body: body(name, number, side) };
    }
    const oldest = kind === 7 && this.#passing.length > 20 ? this.#passing.shift() : undefined;
    if (oldest !== undefined) {
      return { method: "DELETE", path: `/api/v1/namespaces/${oldest.namespace}/configmaps/${oldest.name}` };
    }
    if (kind > 7) return { method: "POST", path: `${path}/events`, body: event(namespace, number) };
    const name = this.#steady(this.#random.below(steadyCount));
    return { method: "PUT", path: `${path}/configmaps/${name}`, body: body(name, number, side) };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#client.close();
  }
}

/**
 * Returns a Kubernetes Event. It expires with its etcd lease, and all keys of one lease are deleted at the same
 * version.
 */
function event(namespace: string, number: number): object {
  const involvedObject = { kind: "ConfigMap", namespace, name: "thing-0-s0" };
  return {
    metadata: { name: `noted-${number}` },
    involvedObject,
    reason: "Noted",
    message: "x",
    type: "Normal",
  };
}
