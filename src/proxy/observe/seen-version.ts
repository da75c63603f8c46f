/**
 * What each client has seen of each resource: no later response should be older (k/k 59848, G8). A client that reads
 * again after it was moved, or restarted, may reach a backend that is behind.
 */
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { compareVersions } from "../../kube/resource-version.ts";

/** A client's connection. */
export type Connection = { readonly isOpen: boolean };

export class SeenVersion {
  /** The client and the resource, as requested. */
  readonly client: string;
  readonly resource: string;
  /** The newest version seen on any of its connections; "" before the first. */
  version = "";
  /** The connection of the latest request. */
  #latest: Connection | undefined;
  /**
   * What each connection has seen by itself, from the time that several are open at once: they may be several processes
   * behind one address. They are never joined again: which of them a new one succeeds cannot be known.
   */
  #apart: WeakMap<Connection, string> | undefined;
  /** Refusals in a row for requests from that version. */
  refusals = 0;
  /** When an older response was last reported: a clock reading. */
  toldAt = Number.NEGATIVE_INFINITY;

  constructor(client: string, resource: string) {
    this.client = client;
    this.resource = resource;
  }

  /** This connection sends a request. One that opens after the last was closed belongs to the same client. */
  meet(connection: Connection): void {
    const before = this.#latest;
    if (before === connection) return;
    this.#latest = connection;
    if (before?.isOpen === true) this.#apart ??= new WeakMap([[before, this.version]]);
  }

  /** What the client on this connection has certainly seen. */
  seenBy(connection: Connection): string {
    return this.#apart === undefined ? this.version : (this.#apart.get(connection) ?? "");
  }

  raise(version: string, connection: Connection): void {
    if (compareVersions(version, this.version) > 0) this.version = version;
    if (this.#apart !== undefined && compareVersions(version, this.seenBy(connection)) > 0)
      this.#apart.set(connection, version);
  }

  /** Counts a refusal. After several it gives the version up, because old data is better than none; returns true then. */
  refused(): boolean {
    this.refusals += 1;
    if (this.refusals < limits.floorRefusals) return false;
    this.refusals = 0;
    this.version = "";
    return true;
  }
}

/** Those of all clients. The least recently used is forgotten first. */
export class SeenVersions {
  readonly #seenVersions = new Lru<string, SeenVersion>(limits.floors);

  get size(): number {
    return this.#seenVersions.size;
  }

  /** `client` and `identity` are what stays the same when a client reconnects; only the first is displayed. */
  of(client: string, identity: string, resource: string): SeenVersion {
    const key = `${client} ${identity} ${resource}`;
    const seenVersion = this.#seenVersions.get(key) ?? new SeenVersion(client, resource);
    this.#seenVersions.set(key, seenVersion);
    return seenVersion;
  }
}
