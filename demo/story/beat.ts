/**
 * Writes a ConfigMap ten times a second. The writes bypass all proxies, so that no fault delays them. Each write has a
 * count and a known time, so that a client can detect missing and late events of its watch.
 */
import { type Clock, timestampOf } from "../../src/base/clock.ts";
import { type Json, mapOf, textOf } from "../objects/json.ts";
import type { Store } from "../objects/store.ts";

const periodMs = 100;
const namespace = "kube-public";
const name = "beat";

export class Beat {
  /** Path of the ConfigMap's collection. The collection contains no other object. */
  static readonly path = `/api/v1/namespaces/${namespace}/configmaps`;
  readonly #write: WriteBeat;
  readonly #clock: Clock;
  /** Clock readings (ms), one for each write. Write number 1 has index 0. */
  readonly #times: number[] = [];
  #cancel = (): void => {};
  #isStopped = false;

  constructor(write: WriteBeat, clock: Clock) {
    this.#write = write;
    this.#clock = clock;
  }

  get count(): number {
    return this.#times.length;
  }

  /** Returns the milliseconds since write number `count`; 0: this write has not been made yet. */
  age(count: number): number {
    const at = this.#times[count - 1];
    return at === undefined ? 0 : this.#clock.now() - at;
  }

  start(): void {
    this.#times.push(this.#clock.now());
    // The next write begins only after this one is done, so that the store receives the writes in order.
    const written = this.#write(this.count);
    if (written === undefined) this.#again();
    else void written.then(() => this.#again());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #again(): void {
    if (!this.#isStopped) this.#cancel = this.#clock.after(periodMs, () => this.start());
  }
}

/**
 * Makes write number `count` (1, 2, …), which stores `count` in the ConfigMap. A returned promise resolves when the
 * write is done. It never rejects.
 */
export type WriteBeat = (count: number) => void | Promise<void>;

/** Returns a function that makes each write directly in the store that embedded apiservers share. */
export function beatInto(store: Store, clock: Clock): WriteBeat {
  return (count) => {
    const metadata = {
      name,
      namespace,
      uid: "00000000-0000-4000-8000-00000000bea7",
      resourceVersion: "",
      creationTimestamp: timestampOf(clock.wall()),
      labels: {},
      rest: {},
    };
    const fields = { data: { count: String(count) } };
    store.put("configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata, fields });
  };
}

/** Returns the ConfigMap that write number `count` sends. */
export function beatObject(count: number): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace },
    data: { count: String(count) },
  };
}

/** Returns the number of the write that made this object; 0: none of these writes made it. */
export function beatOf(object: Json | undefined): number {
  const { metadata, data } = mapOf(object);
  return textOf(mapOf(metadata)["name"]) === name ? Number(textOf(mapOf(data)["count"])) : 0;
}
