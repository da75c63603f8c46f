/**
 * Writes a ConfigMap several times a second, without any proxy, so that no fault delays the writes. Each write is
 * counted and timed, so that a watch can measure missed events and delays.
 */
import { type Clock, timestampOf } from "../../base/clock.ts";
import { type Json, mapOf, textOf } from "../objects/json.ts";
import type { Store } from "../objects/store.ts";

const periodMs = 100;
const namespace = "kube-public";
const name = "beat";

export class Beat {
  /** Path of the ConfigMap, in a namespace that nothing else uses. */
  static readonly path = `/api/v1/namespaces/${namespace}/configmaps`;
  readonly #write: WriteBeat;
  readonly #clock: Clock;
  /** Time of each write, a clock reading. The first write has count 1 and index 0. */
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

  /** Returns the milliseconds since the write with this count; 0 if it was not made yet. */
  age(count: number): number {
    const at = this.#times[count - 1];
    return at === undefined ? 0 : this.#clock.now() - at;
  }

  start(): void {
    this.#times.push(this.#clock.now());
    // Waits for this write before the next one, so that they arrive in order.
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

/** Makes the write with this count. A returned promise resolves when the write is done and never rejects. */
export type WriteBeat = (count: number) => void | Promise<void>;

/** Returns a function that writes into the store of embedded apiservers. */
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

/** Returns the object that a client sends for the same write. */
export function beatObject(count: number): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace },
    data: { count: String(count) },
  };
}

/** Returns the count of the write that made this object; 0 for any other object. */
export function beatOf(object: Json | undefined): number {
  const { metadata, data } = mapOf(object);
  return textOf(mapOf(metadata)["name"]) === name ? Number(textOf(mapOf(data)["count"])) : 0;
}
