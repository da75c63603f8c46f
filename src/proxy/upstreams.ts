/** Every backend's lanes, by the backend's name; backends come and go with the configuration. */
import { Failure } from "../failure.ts";
import type { Client } from "./client.ts";
import { type LaneKey, type LaneKind, type Lanes, laneKey } from "./lanes.ts";
import type { TrustClass } from "./trust.ts";

export type UpstreamsOptions = {
  /** Makes the lanes of one backend; called once for each that is new. */
  readonly lanesFor: (backend: string) => Lanes;
  /** "none": every client has lanes of its own (D2). */
  readonly sharing: "lanes" | "none";
};

/** The keys that nearly all requests use, made once. */
const sharedKeys = {
  proven: { plain: laneKey("proven", "plain"), long: laneKey("proven", "long") },
  unproven: { plain: laneKey("unproven", "plain"), long: laneKey("unproven", "long") },
};

export class Upstreams {
  readonly #options: UpstreamsOptions;
  readonly #lanes = new Map<string, Lanes>();
  readonly #owners = new WeakMap<Client, string>();
  #ownerCount = 0;

  constructor(options: UpstreamsOptions) {
    this.#options = options;
  }

  /** Opens lanes for newcomers and lets go of those that are gone; the others are not touched. */
  reconcile(backends: readonly string[]): void {
    for (const name of backends) {
      if (this.#lanes.has(name)) continue;
      const lanes = this.#options.lanesFor(name);
      this.#lanes.set(name, lanes);
      lanes.start();
    }
    // After the newcomers: who waits for one that goes is sent to one of those.
    for (const [name, lanes] of this.#lanes) {
      if (backends.includes(name)) continue;
      this.#lanes.delete(name);
      lanes.stop();
    }
  }

  get all(): ReadonlyMap<string, Lanes> {
    return this.#lanes;
  }

  lanesOf(backend: string): Lanes | undefined {
    return this.#lanes.get(backend);
  }

  unknown(backend: string): Failure {
    return new Failure("no-backend", "proxy", `Backend ${backend} was removed`);
  }

  loadOf(backend: string): number {
    return this.#lanes.get(backend)?.openStreams ?? 0;
  }

  keyFor(wanted: { readonly trust: TrustClass; readonly kind: LaneKind }, client: Client): LaneKey {
    const { trust, kind } = wanted;
    if (trust !== "private" && this.#options.sharing === "lanes") return sharedKeys[trust][kind];
    return laneKey("private", kind, this.#ownerOf(client));
  }

  #ownerOf(client: Client): string {
    let owner = this.#owners.get(client);
    if (owner === undefined) {
      this.#ownerCount += 1;
      owner = String(this.#ownerCount);
      this.#owners.set(client, owner);
    }
    return owner;
  }
}
