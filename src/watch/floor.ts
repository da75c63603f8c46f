/**
 * What each client has seen of each resource: the floor below which nothing it is shown later should be (k/k 59848,
 * G8). A client that asks again after it was moved, or restarted, may meet a backend that is behind.
 */
import { limits } from "../limits.ts";
import { compareVersions } from "./version.ts";

export class Floor {
  /** Whose it is, as it was asked for. */
  readonly client: string;
  readonly resource: string;
  /** The newest version seen; "" before any was. */
  version = "";
  /** Times in a row that nobody could answer from there on. */
  refusals = 0;
  /** When an answer from below was told last: a clock reading. */
  toldAt = Number.NEGATIVE_INFINITY;

  constructor(client: string, resource: string) {
    this.client = client;
    this.resource = resource;
  }

  raise(version: string): void {
    if (compareVersions(version, this.version) > 0) this.version = version;
  }

  /** Better an old state than none: after several refusals it is given up. Returns whether it was. */
  refused(): boolean {
    this.refusals += 1;
    if (this.refusals < limits.floorRefusals) return false;
    this.refusals = 0;
    this.version = "";
    return true;
  }
}

/** Those of all clients. Who has asked least lately is forgotten first. */
export class Floors {
  readonly #floors = new Map<string, Floor>();

  get size(): number {
    return this.#floors.size;
  }

  /** `client` is whatever stays the same when it comes again. */
  of(client: string, resource: string): Floor {
    const key = `${client} ${resource}`;
    const floor = this.#floors.get(key) ?? new Floor(client, resource);
    this.#floors.delete(key);
    this.#floors.set(key, floor);
    if (this.#floors.size > limits.floors) this.#forgetOldest();
    return floor;
  }

  #forgetOldest(): void {
    const [oldest] = this.#floors.keys();
    if (oldest !== undefined) this.#floors.delete(oldest);
  }
}
