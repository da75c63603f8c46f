/** Every backend's lanes, by the backend's name; backends come and go with the configuration. */
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Client } from "../context/client.ts";
import type { TrustClass } from "../identity/trust.ts";
import type { Lane } from "./lane.ts";
import { type LaneKey, type LaneKind, laneKey, rejectedOwner } from "./lane-key.ts";
import type { Lanes } from "./lanes.ts";

export type UpstreamsOptions = {
  /** Makes the lanes of one backend; called once for each that is new. */
  readonly lanesFor: (backend: string) => Lanes;
  /** "none": every client has lanes of its own (D2). */
  readonly sharing: "lanes" | "none";
  /** What part of a backend it counts for, above 0 and at most 1 (slow-start.ts). */
  readonly shareOf: (backend: string) => number;
};

/** The keys that nearly all requests use, made once. */
const sharedKeys = {
  proven: { plain: laneKey("proven", "plain"), long: laneKey("proven", "long") },
  unproven: { plain: laneKey("unproven", "plain"), long: laneKey("unproven", "long") },
  rejected: {
    plain: laneKey("unproven", "plain", rejectedOwner),
    long: laneKey("unproven", "long", rejectedOwner),
  },
  "front-proxy": { plain: laneKey("front-proxy", "plain"), long: laneKey("front-proxy", "long") },
  impersonate: { plain: laneKey("impersonate", "plain"), long: laneKey("impersonate", "long") },
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

  /** A lane with room that is not known to be silent: its PING, if one is under way, has not waited for long. */
  promptLane(backend: string, key: LaneKey): Lane | undefined {
    const lane = this.#lanes.get(backend)?.take(key);
    return lane?.isPrompt === true ? lane : undefined;
  }

  /** The backend is going: what lives on there may move while there is time. */
  leave(backend: string): void {
    const rows = this.#lanes.get(backend)?.rows ?? [];
    for (const lane of rows.flatMap(({ lanes }) => lanes)) lane.leave();
  }

  /** The certificate under which lanes of this class were opened was replaced: so are they. */
  renew(trust: TrustClass): void {
    for (const lanes of this.#lanes.values()) lanes.renew(trust);
  }

  unknown(backend: string): Failure {
    return new Failure("no-backend", "proxy", `Backend ${backend} was removed`);
  }

  /** Requests that it has to answer: its streams, and those that wait for a lane and will be. */
  loadOf(backend: string): number {
    const lanes = this.#lanes.get(backend);
    if (lanes === undefined) return 0;
    return lanes.rows.reduce((sum, { waiting }) => sum + waiting, lanes.openStreams);
  }

  /** What part of a backend it counts for. */
  shareOf(backend: string): number {
    return this.#options.shareOf(backend);
  }

  /** How long it may be silent before it is suspected, in ms. */
  suspectAfterMs(backend: string): number {
    return this.#lanes.get(backend)?.deadlines.suspectAfterMs ?? limits.laneDoubtMs;
  }

  /** What counts when one is chosen: the load, `besides` included, as it would be for a whole backend. */
  weightOf(backend: string, besides = 0): number {
    return (this.loadOf(backend) + besides + 1) / this.#options.shareOf(backend);
  }

  /** "rejected": on lanes of the unproven that no newcomer shares. */
  keyFor(
    wanted: { readonly trust: TrustClass | "rejected"; readonly kind: LaneKind },
    client: Client,
  ): LaneKey {
    const { trust, kind } = wanted;
    if (trust !== "private" && this.#options.sharing === "lanes") return sharedKeys[trust][kind];
    // Whose lanes carry a credential of ours keep their class: a client's own lanes come without and with it.
    const isVouched = trust === "front-proxy" || trust === "impersonate";
    return laneKey(isVouched ? trust : "private", kind, this.#ownerOf(client));
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
