/**
 * What each client has seen of each resource: the floor below which nothing it is shown later should be (k/k 59848,
 * G8). A client that asks again after it was moved, or restarted, may meet a backend that is behind.
 */
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { compareVersions } from "../../kube/resource-version.ts";

/** A client's connection. */
export type Connection = { readonly isOpen: boolean };

export class SeenVersion {
  /** Whose it is, as it was asked for. */
  readonly client: string;
  readonly resource: string;
  /** The newest version seen, by any of its connections; "" before any was. */
  version = "";
  /** The connection that asked last. */
  #latest: Connection | undefined;
  /**
   * Once several connections were open at a time they may be several processes behind one address: what each has seen by
   * itself. They are never joined again: which of them a new one succeeds cannot be known.
   */
  #apart: WeakMap<Connection, string> | undefined;
  /** Times in a row that nobody could answer from there on. */
  refusals = 0;
  /** When an answer from below was told last: a clock reading. */
  toldAt = Number.NEGATIVE_INFINITY;

  constructor(client: string, resource: string) {
    this.client = client;
    this.resource = resource;
  }

  /** This connection asks. One that comes after the last was closed is the same client again. */
  meet(connection: Connection): void {
    const before = this.#latest;
    if (before === connection) return;
    this.#latest = connection;
    if (before?.isOpen === true) this.#apart ??= new WeakMap([[before, this.version]]);
  }

  /** What the client at this connection has surely seen. */
  seenBy(connection: Connection): string {
    return this.#apart === undefined ? this.version : (this.#apart.get(connection) ?? "");
  }

  raise(version: string, connection: Connection): void {
    if (compareVersions(version, this.version) > 0) this.version = version;
    if (this.#apart !== undefined && compareVersions(version, this.seenBy(connection)) > 0)
      this.#apart.set(connection, version);
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
export class SeenVersions {
  readonly #seenVersions = new Lru<string, SeenVersion>(limits.floors);

  get size(): number {
    return this.#seenVersions.size;
  }

  /** `client` and `identity` are what stays the same when it comes again; only the first is shown. */
  of(client: string, identity: string, resource: string): SeenVersion {
    const key = `${client} ${identity} ${resource}`;
    const seenVersion = this.#seenVersions.get(key) ?? new SeenVersion(client, resource);
    this.#seenVersions.set(key, seenVersion);
    return seenVersion;
  }
}
