/**
 * The checks that a request must pass before it is sent: the admission of requests whose credential is *unproven* (no
 * backend has accepted it yet), the limits that count the request, and the shield of its backend.
 */
import type { Clock } from "../../base/clock.ts";
import { detach } from "../../base/detach.ts";
import { Failure } from "../../base/failure.ts";
import type { BackendView } from "../../health/backend.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { PoolKey } from "../../upstream/pool/pool-key.ts";
import type { Admission, Applicant, Entry } from "../admission/admission.ts";
import type { Limit, LimitedCaller } from "./limit.ts";
import { endAll } from "./request-limits.ts";
import type { ShieldPlace } from "./shield.ts";
import type { Shields } from "./shields.ts";

export type GateParts = {
  readonly clock: Clock;
  readonly admission: Admission;
  readonly shields: Shields;
};

export type GateRequest = {
  /**
   * The client's address and token, for admission; undefined: a backend had accepted the credential before the request
   * arrived.
   */
  readonly applicant: Pick<Applicant, "address" | "bearer"> | undefined;
  readonly info: RequestInfo;
  readonly start: "exact" | "state" | "now" | undefined;
  readonly awaitsMarker: boolean;
  readonly isSelected: boolean;
  /** Returns what is known about the caller now. This changes when a backend accepts the caller's token. */
  readonly caller: () => LimitedCaller;
  /** The hash of a token that a backend has accepted, or else the client's address. */
  readonly credential: () => string;
};

/** The request as its gate sees it. The exchange implements this type. */
export type GateOwner = {
  readonly isAnswered: boolean;
  readonly watch: { readonly progress: { readonly phase: string; readonly lastEventAt: number } } | undefined;
  poolKey(): PoolKey;
  /** Called when the request may be sent. */
  proceed(): void;
  turnAway(failure: Failure): void;
};

/**
 * Maximum length of `group/resource`. A group is a DNS subdomain (253 characters), and a resource is a DNS label (63).
 */
const maxKindLength = 253 + 1 + 63;

/**
 * If no bookmark will mark the end of a watch's initial events, they count as complete after this many ms without an
 * event.
 */
const initialPauseMs = 250;

/**
 * True for lists, and for watches with initial events. Leases are exempt, because leader election and the health of
 * nodes depend on them.
 */
export function isShielded(
  { verb, kind, isResource, group, resource }: RequestInfo,
  start: GateRequest["start"],
): boolean {
  if (group === "coordination.k8s.io" && resource === "leases") return false;
  return start === undefined ? verb === "list" && kind === "plain" && isResource : start === "state";
}

export class RequestGate {
  readonly #parts: GateParts;
  readonly #request: GateRequest;
  readonly #isShielded: boolean;
  #limits: readonly Limit[];
  #place: ShieldPlace | undefined;
  /** The request's entry in the admission of unproven credentials; undefined: it has not entered. */
  #entry: Entry | undefined;
  /**
   * Clock reading at which a request that had to wait was admitted; 0: it did not wait. The time `sentAwayMs` (see
   * request/limits.ts) then begins at this reading, not at the request's arrival.
   */
  admittedAt = 0;

  constructor(parts: GateParts, request: GateRequest, limits: readonly Limit[]) {
    this.#parts = parts;
    this.#request = request;
    this.#limits = limits;
    this.#isShielded = isShielded(request.info, request.start);
  }

  /**
   * True if the request's credential permits sending it now. False if the credential is unproven, and the admission
   * makes the request wait or has refused it.
   */
  isAdmitted(owner: GateOwner): boolean {
    const { applicant } = this.#request;
    if (applicant === undefined || this.#entry?.state === "open") return true;
    if (owner.poolKey().trust !== "unproven") return true;
    this.#entry = this.#parts.admission.enter({
      ...applicant,
      place: () => {
        this.admittedAt = this.#parts.clock.now();
        owner.proceed();
      },
      refuse: () => owner.turnAway(tooManyUnproven),
    });
    if (this.#entry === undefined) owner.turnAway(tooManyUnproven);
    return this.#entry?.state === "open";
  }

  /**
   * Returns the backend whose shield has admitted the request or makes it wait. If there is none, returns `bound`, the
   * backend to which the client is bound.
   */
  boundTo(bound: string | undefined): string | undefined {
    return this.#place?.shield.backend ?? bound;
  }

  /**
   * Returns the backends that may get the request. If the request is a list, and its client is bound to no backend,
   * returns only the backends at which the list need not wait. If it must wait at every backend, returns all.
   */
  choice(views: readonly BackendView[], bound: string | undefined): readonly BackendView[] {
    return this.#isLimited && this.boundTo(bound) === undefined ? this.#parts.shields.roomy(views) : views;
  }

  get #isLimited(): boolean {
    return (
      this.#parts.shields.isAnyUp &&
      this.#isShielded &&
      !this.#parts.shields.isExempt(this.#request.caller().groups)
    );
  }

  /**
   * True if the request may be sent to this backend. False if the backend's shield makes the request wait, or has
   * refused it.
   */
  mayAsk(backend: string, owner: GateOwner): boolean {
    if (!this.#isLimited) return true;
    if (this.#place?.shield.backend === backend && this.#place.state === "placed") return true;
    this.#leave();
    const { user } = this.#request.caller();
    const place = this.#parts.shields.enter(backend, {
      user: user === undefined ? this.#request.credential() : `user ${user}`,
      kind: this.#kind,
      isListing: () => this.#isListing(owner),
      place: () => owner.proceed(),
      refuse: () => owner.turnAway(weak(backend)),
    });
    if (place === "free") return true;
    this.#place = place;
    if (place === undefined) owner.turnAway(weak(backend));
    return place?.state === "placed";
  }

  /**
   * A key that is equal for lists that take about the same time. "": unknown, as for a watch, whose response begins
   * before its events.
   */
  get #kind(): string {
    const { info, start, isSelected } = this.#request;
    if (start !== undefined) return "";
    const resource = `${info.group}/${info.resource}`;
    // The client chooses these names. The shield remembers them after the request, so they must be short and must not
    // refer to the request's buffer.
    if (resource.length > maxKindLength) return "";
    return detach(`${resource} ${info.namespace !== ""} ${isSelected}`);
  }

  /** True until a list's response, or a watch's initial events, have arrived. */
  #isListing({ watch, isAnswered }: GateOwner): boolean {
    if (watch === undefined) return this.#request.start === undefined || !isAnswered;
    const { phase, lastEventAt } = watch.progress;
    if (phase !== "opening" && phase !== "listing") return false;
    return this.#request.awaitsMarker || this.#parts.clock.now() - lastEventAt < initialPauseMs;
  }

  /**
   * Passes the request's first response to the admission and to the shield. `ms`: time since the request was sent.
   * `isAccepted`: see `isTokenAccepted`.
   */
  answered(status: number, ms: number, isAccepted: boolean | undefined): void {
    if (this.#entry !== undefined) this.#admitted(this.#entry, status, isAccepted);
    if (this.#place !== undefined) this.#parts.shields.answered(this.#place, status, ms);
    if (this.#request.info.kind !== "plain") this.#leaveLimits();
  }

  /**
   * A successful watch, log or proxied request leaves the admission, even if it shows nothing about its token: it may
   * last for hours, and would block other clients' new tokens.
   */
  #admitted(entry: Entry, status: number, isAccepted: boolean | undefined): void {
    const { admission } = this.#parts;
    if (isAccepted !== undefined) admission.answered(entry, isAccepted);
    else if (entry.bearer !== undefined && status < 300 && this.#request.info.kind !== "plain")
      admission.leave(entry);
  }

  end(): void {
    this.#leaveLimits();
    this.#leave();
    if (this.#entry !== undefined) this.#parts.admission.leave(this.#entry);
  }

  #leaveLimits(): void {
    endAll(this.#limits);
    this.#limits = [];
  }

  #leave(): void {
    if (this.#place !== undefined) this.#parts.shields.leave(this.#place);
    this.#place = undefined;
  }
}

const tooManyUnproven = new Failure(
  "overload",
  "proxy",
  "Too many requests are under way with credentials that no backend has accepted yet",
);

function weak(backend: string): Failure {
  const message = `Too many requests, please try again later: backend ${backend} has just started or is overloaded`;
  return new Failure("limited", "proxy", message);
}
