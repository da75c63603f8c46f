/** The shields of a cluster, one for each backend. */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import type { BackendView } from "../../health/backend.ts";
import type { ShieldConfig } from "../../ops/config/cluster.ts";
import { shieldLimits } from "./limits.ts";
import { Shield, type ShieldedLoad, type ShieldedRequest, type ShieldPlace } from "./shield.ts";

export type ShieldsParts = {
  /**
   * A clock that stops while the event loop is blocked. The time of a block therefore does not count as a request's
   * wait, and no request is refused because of it.
   */
  readonly clock: Clock;
  readonly loads: {
    readonly of: (backend: string) => ShieldedLoad | undefined;
    readonly slowness: (backend: string) => number;
  };
};

/** What operators see of a shield. `cap`: maximum number of concurrent lists; 0: the shield is down. */
export type ShieldStatus = { readonly cap: number; readonly waiting: number; readonly refused: number };

const noShield: ShieldStatus = { cap: 0, waiting: 0, refused: 0 };

export const shieldOff: ShieldConfig = { isEnabled: false, queueMs: 0, exemptGroups: [] };

export class Shields extends Interval {
  readonly #clock: Clock;
  readonly #loads: ShieldsParts["loads"];
  readonly #shields = new Map<string, Shield>();
  #config: ShieldConfig;
  /** True if any shield is up, so that lists have to be checked. */
  isAnyUp = false;
  #isLooking = false;
  #hasBackends = false;
  #refusedBefore = 0;

  constructor({ clock, loads }: ShieldsParts, config = shieldOff) {
    super(clock, shieldLimits.judgeMs, () => this.#judge());
    this.#clock = clock;
    this.#loads = loads;
    this.#config = config;
  }

  configure(config: ShieldConfig): void {
    this.#config = config;
    if (!config.isEnabled) for (const shield of this.#shields.values()) shield.release();
    this.#update();
  }

  reconcile(backends: readonly string[]): void {
    for (const [name, shield] of this.#shields)
      if (!backends.includes(name)) {
        shield.release();
        this.#refusedBefore += shield.refused;
        this.#shields.delete(name);
      }
    // The first call passes the backends that exist when the proxy starts. Only backends of later calls count as added.
    const isAdded = this.#hasBackends;
    this.#hasBackends ||= backends.length > 0;
    for (const name of backends)
      if (!this.#shields.has(name))
        this.#shields.set(name, new Shield(name, isAdded, (run) => this.#clock.soon(run)));
    this.#update();
  }

  of(backend: string): Shield | undefined {
    return this.#shields.get(backend);
  }

  /** Number of requests refused since the process started, including those at removed backends. */
  get refused(): number {
    let sum = this.#refusedBefore;
    for (const { refused } of this.#shields.values()) sum += refused;
    return sum;
  }

  statusOf(backend: string): ShieldStatus {
    const shield = this.#shields.get(backend);
    if (shield === undefined) return noShield;
    const { cap, waiting, refused } = shield;
    return { cap: shield.isUp(this.#clock.now()) ? cap : 0, waiting, refused };
  }

  /** Called when a backend has become ready. Puts the backend's shield up if the backend has just started. */
  returned(backend: string): void {
    if (this.#config.isEnabled) this.#shields.get(backend)?.warm(this.#clock.now());
    this.#update();
  }

  /**
   * Takes a new health state of a backend into account. If the backend is not ready, the requests that wait for it
   * choose another backend.
   */
  judged({ name, state }: Pick<BackendView, "name" | "state">): void {
    const shield = this.#shields.get(name);
    if (shield === undefined) return;
    if (state === "dead" || state === "draining") shield.isStarting = true;
    if (state !== "ready") shield.release();
  }

  isExempt(groups: readonly string[]): boolean {
    return groups.some((group) => this.#config.exemptGroups.includes(group));
  }

  /** Returns the backends at which a list request need not wait. If it must wait at every backend, returns all of them. */
  roomy<View extends Pick<BackendView, "name">>(views: readonly View[]): readonly View[] {
    const now = this.#clock.now();
    const free = views.filter(({ name }) => {
      const shield = this.#shields.get(name);
      return shield?.isUp(now) !== true || shield.hasRoom;
    });
    return free.length > 0 ? free : views;
  }

  /**
   * Passes a list to a backend's shield, which admits it or makes it wait. Returns "free" if the shield is down, and
   * undefined if the list is refused.
   */
  enter(backend: string, request: ShieldedRequest): ShieldPlace | "free" | undefined {
    const shield = this.#shields.get(backend);
    const now = this.#clock.now();
    if (shield?.isUp(now) !== true) return "free";
    const place = shield.enter(request, now);
    this.#lookSoon();
    return place;
  }

  leave(place: ShieldPlace): void {
    place.shield.leave(place, this.#clock.now());
  }

  answered(place: ShieldPlace, status: number, ms: number): void {
    place.shield.answered(place, status, ms, this.#clock.now());
  }

  #judge(): void {
    const now = this.#clock.now();
    for (const [name, shield] of this.#shields) {
      const load = this.#loads.of(name);
      if (load !== undefined && this.#config.isEnabled) shield.judge(now, load, this.#loads.slowness(name));
    }
    this.#update();
  }

  #update(): void {
    const now = this.#clock.now();
    let isAnyUp = false;
    for (const shield of this.#shields.values()) if (shield.isUp(now)) isAnyUp = true;
    this.isAnyUp = isAnyUp;
  }

  #lookSoon(): void {
    if (this.#isLooking) return;
    const isNeeded = Array.from(this.#shields.values()).some(({ waiting, placed }) => waiting + placed > 0);
    if (!isNeeded) return;
    this.#isLooking = true;
    this.#clock.after(shieldLimits.lookMs, () => {
      this.#isLooking = false;
      const now = this.#clock.now();
      for (const shield of this.#shields.values()) shield.look(now, this.#config.queueMs);
      this.#lookSoon();
    });
  }
}
