/**
 * The limits that operators have set at run time, for all clusters of the process. Each limit ends at a set time. A
 * handover passes the limits to the successor process; a restart drops them.
 */
import type { WrittenLimit } from "../../../config/schema/written.ts";
import { type Clock, dateOf } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../../base/json.ts";
import type { Journal } from "../../events/journal.ts";
import { limitOf, limitProblem } from "../../ops/config/limit.ts";
import { limitIn } from "../../ops/config/schema.ts";
import { Limit, type LimitOrigin, ReplicaCount, titleOf } from "./limit.ts";
import { operatorLimits } from "./limits.ts";

type Kept = { readonly written: WrittenLimit; readonly limit: Limit; readonly stop: () => void };

export class OperatorLimits {
  /**
   * Number of processes that share each limit of scope AllReplicas, whether an operator or a cluster's configuration
   * has set the limit.
   */
  readonly replicas = new ReplicaCount();
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #kept = new Map<string, Kept>();
  readonly #subscribers = new Set<() => void>();
  #lastId = 0;
  #isFrozen = false;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  get all(): readonly Limit[] {
    return Array.from(this.#kept.values(), ({ limit }) => limit);
  }

  /** Calls `run` after each change of the limits. Returns a function that ends the subscription. */
  subscribe(run: () => void): () => void {
    this.#subscribers.add(run);
    return () => this.#subscribers.delete(run);
  }

  /**
   * Puts a limit into force for `ms`, and gives it a number as its id. `wanted`: an entry of `clusters[].limits`
   * without a name.
   */
  add(wanted: object, { by, reason }: Pick<LimitOrigin, "by" | "reason">, ms: number): Limit | Failure {
    if (this.#isFrozen) return handingOver;
    if (this.#kept.size >= operatorLimits.limits)
      return new Failure(
        "overload",
        "client",
        `${operatorLimits.limits} limits are in force: remove one first`,
      );
    const written = limitIn({ ...wanted, name: String(this.#lastId + 1) });
    const problem = typeof written === "string" ? written : limitProblem(written);
    if (typeof written === "string" || problem !== undefined)
      return new Failure("bad-file", "client", `The limit is invalid: ${problem}`);
    if (this.state.length + JSON.stringify(written).length > operatorLimits.stateChars)
      return new Failure("overload", "client", "The limits in force are too long: remove one first");
    this.#lastId += 1;
    const startedMs = this.#clock.wall();
    return this.#keep(written, { by, reason, startedMs, endsMs: startedMs + ms }, 0);
  }

  #keep(written: WrittenLimit, origin: LimitOrigin, refused: number): Limit {
    const limit = new Limit(limitOf(written), this.#clock, { origin, replicas: this.replicas });
    limit.refused = refused;
    const stop = this.#clock.after(Math.max(0, origin.endsMs - this.#clock.wall()), () =>
      this.#end(limit, "Its time is over"),
    );
    this.#kept.set(limit.name, { written, limit, stop });
    const { by, reason, endsMs } = origin;
    const endsAt = dateOf(endsMs).toISOString();
    this.#journal.write({
      kind: "limit.added",
      limit: titleOf(limit),
      allows: String(limit),
      by,
      reason,
      endsAt,
    });
    this.#changed();
    return limit;
  }

  /**
   * Ends a limit before its time, and returns it. Returns undefined if no limit has this id, and a Failure during a
   * handover.
   */
  remove(id: string, by: string): Limit | Failure | undefined {
    if (this.#isFrozen) return handingOver;
    const limit = this.#kept.get(id)?.limit;
    if (limit !== undefined) this.#end(limit, `Removed by ${by}`);
    return limit;
  }

  #end(limit: Limit, reason: string): void {
    const { name, refused } = limit;
    this.#kept.get(name)?.stop();
    this.#kept.delete(name);
    this.#journal.write({ kind: "limit.removed", limit: titleOf(limit), refused, reason });
    this.#changed();
  }

  #changed(): void {
    for (const run of this.#subscribers) run();
  }

  /** Returns the limits for a successor. Until `thaw`, refuses changes, because the successor would not get them. */
  freeze(): string {
    this.#isFrozen = true;
    return this.state;
  }

  /** The limits in force as JSON. Another process passes the text to `restore` or `follow`. */
  get state(): string {
    const limits = Array.from(this.#kept.values(), ({ written, limit: { origin, refused } }) => ({
      written,
      ...origin,
      refused,
    }));
    return JSON.stringify({ lastId: this.#lastId, limits });
  }

  thaw(): void {
    this.#isFrozen = false;
  }

  /** Replaces this worker's limits with those of its parent process. `state`: the parent's `state`. */
  follow(state: string): void {
    const parsed = parseJson(state);
    const limits: readonly unknown[] =
      isRecord(parsed) && Array.isArray(parsed["limits"]) ? parsed["limits"] : [];
    const wanted = new Map(
      limits.filter(isRecord).map((one) => [textAt(recordAt(one, "written"), "name"), one] as const),
    );
    for (const { limit } of Array.from(this.#kept.values()))
      if (!wanted.has(limit.name)) this.#end(limit, "The parent has ended it");
    for (const [name, one] of wanted) if (!this.#kept.has(name)) this.#restoreOne(one);
  }

  /** Puts the limits of a predecessor into force. `state`: the result of its `freeze`. */
  restore(state: string): void {
    const parsed = state.length > operatorLimits.stateChars ? undefined : parseJson(state);
    if (!isRecord(parsed)) return;
    this.#lastId = countAt(parsed, "lastId");
    const limits: readonly unknown[] = Array.isArray(parsed["limits"]) ? parsed["limits"] : [];
    for (const one of limits.slice(0, operatorLimits.limits)) if (isRecord(one)) this.#restoreOne(one);
  }

  #restoreOne(one: JsonRecord): void {
    // The predecessor may be another version of the program, so its limits are validated again.
    const written = limitIn(recordAt(one, "written"));
    const endsMs = countAt(one, "endsMs");
    if (typeof written === "string" || endsMs <= this.#clock.wall()) return;
    const { by, reason } = { by: textAt(one, "by"), reason: textAt(one, "reason") };
    const startedMs = countAt(one, "startedMs");
    this.#keep(written, { by, reason, startedMs, endsMs }, countAt(one, "refused"));
  }

  stop(): void {
    for (const { stop } of this.#kept.values()) stop();
  }
}

const handingOver = new Failure("draining", "proxy", "A successor is starting: try again");

function countAt(parent: JsonRecord, key: string): number {
  const value = parent[key];
  return typeof value === "number" ? value : 0;
}
