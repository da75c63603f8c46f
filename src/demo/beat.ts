/**
 * Writes one configmap several times a second, straight into the store: no fault of an apiserver or a proxy delays it.
 * Each write is counted and timed, so that a watch tells what it missed and how late the rest came.
 */
import { type Clock, timestampOf } from "../clock.ts";
import { type Json, mapOf, textOf } from "./json.ts";
import type { Store } from "./store.ts";

const periodMs = 100;
const namespace = "kube-public";
const name = "beat";

export class Beat {
  /** Of a namespace in which nobody looks for anything else. */
  static readonly path = `/api/v1/namespaces/${namespace}/configmaps`;
  readonly #store: Store;
  readonly #clock: Clock;
  /** When each write was made; its count is its index plus one. */
  readonly #times: number[] = [];
  #cancel = (): void => {};

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** How many writes there were. */
  get count(): number {
    return this.#times.length;
  }

  /** How long ago a write was made, in ms; 0 for one that has not been made. */
  age(count: number): number {
    const at = this.#times[count - 1];
    return at === undefined ? 0 : this.#clock.now() - at;
  }

  start(): void {
    this.#times.push(this.#clock.now());
    const now = this.#clock.wall();
    this.#store.put("configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name,
        namespace,
        uid: "00000000-0000-4000-8000-00000000bea7",
        resourceVersion: "",
        creationTimestamp: timestampOf(now),
        labels: {},
        rest: {},
      },
      fields: { data: { count: String(this.count) } },
    });
    this.#cancel = this.#clock.after(periodMs, () => this.start());
  }

  stop(): void {
    this.#cancel();
  }
}

/** Which write an object is of; 0 for one of somebody else's. */
export function beatOf(object: Json | undefined): number {
  const { metadata, data } = mapOf(object);
  return textOf(mapOf(metadata)["name"]) === name ? Number(textOf(mapOf(data)["count"])) : 0;
}
