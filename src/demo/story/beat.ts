/**
 * Writes one configmap several times a second, past every proxy and past the apiserver that is to be struck: no fault delays it.
 * Each write is counted and timed, so that a watch tells what it missed and how late the rest came.
 */
import { type Clock, timestampOf } from "../../base/clock.ts";
import { type Json, mapOf, textOf } from "../objects/json.ts";
import type { Store } from "../objects/store.ts";

const periodMs = 100;
const namespace = "kube-public";
const name = "beat";

export class Beat {
  /** Of a namespace in which nobody looks for anything else. */
  static readonly path = `/api/v1/namespaces/${namespace}/configmaps`;
  readonly #write: WriteBeat;
  readonly #clock: Clock;
  /** When each write was made; its count is its index plus one. */
  readonly #times: number[] = [];
  #cancel = (): void => {};
  #isStopped = false;

  constructor(write: WriteBeat, clock: Clock) {
    this.#write = write;
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
    // The next one waits for this one: they must arrive in their order.
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

/** Makes one write; a promise, if it takes time, resolves when it is made and never rejects. */
export type WriteBeat = (count: number) => void | Promise<void>;

/** Into the store of embedded apiservers. */
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

/** The same as the object that a client writes. */
export function beatObject(count: number): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace },
    data: { count: String(count) },
  };
}

/** Which write an object is of; 0 for one of somebody else's. */
export function beatOf(object: Json | undefined): number {
  const { metadata, data } = mapOf(object);
  return textOf(mapOf(metadata)["name"]) === name ? Number(textOf(mapOf(data)["count"])) : 0;
}
