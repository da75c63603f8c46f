/**
 * The operations that an operator can start at run time: drain and undrain a backend, move a watch, limit requests,
 * reload the configuration. Each operation is journaled with the operator's name, even if it was refused.
 */
import { dateOf } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { limitDuration } from "../../ops/config/limit.ts";
import { titleOf } from "../limits/limit.ts";
import type { OperatorLimits } from "../limits/operator-limits.ts";
import type { DataPath } from "./data-path.ts";

/** Who runs an operation, and why. `by`: the operator's name and origin, as the operator stated them. */
export type Operator = { readonly by: string; readonly reason: string };

type OperatedPath = Pick<DataPath, "backends" | "exchanges" | "migrations">;

export type OperationsParts = {
  readonly journal: Journal;
  /** Returns the data path of each cluster (data-path.ts). Backend names are unique across clusters. */
  readonly paths: () => readonly OperatedPath[];
  readonly limits: OperatorLimits;
  /**
   * Moves the watches that have this audit id and are served by workers of this process. Resolves to undefined if there
   * are no such watches. Default: there are no workers.
   */
  readonly moveInWorkers?: ((auditId: string) => Promise<Outcome | undefined>) | undefined;
  /** Reloads the configuration; undefined if there is no configuration file. */
  readonly reload: (() => Promise<ReloadOutcome>) | undefined;
};

export type ReloadOutcome = {
  /** Reasons why the configuration was rejected; empty if it was applied. */
  readonly problems: readonly string[];
  /** Names of the settings that take effect only after a restart. */
  readonly waiting: readonly string[];
};

/** A sentence about what was done, or the reason why nothing was done. */
export type Outcome = string | Failure;

export class Operations {
  readonly #parts: OperationsParts;

  constructor(parts: OperationsParts) {
    this.#parts = parts;
  }

  /**
   * Drains a backend, if another backend is ready. New requests go to other backends, and the drained backend's watches
   * move gradually. exec, attach, port-forward and `logs -f` stay until they end. The drain ends with an undrain, the
   * backend's removal or the proxy's end.
   */
  drain(name: string, operator: Operator): Outcome {
    return this.#journaled("drain", name, operator, this.#drain(name, operator));
  }

  undrain(name: string, operator: Operator): Outcome {
    return this.#journaled("undrain", name, operator, this.#undrain(name, operator));
  }

  /** Moves the watches that have this audit id and can be moved. A client may use one id for several requests. */
  async move(auditId: string, operator: Operator): Promise<Outcome> {
    const outcome = (await this.#parts.moveInWorkers?.(auditId)) ?? this.moveHere(auditId);
    return this.#journaled("move", auditId, operator, outcome);
  }

  /**
   * Limits requests. `body`: an entry of `clusters[].limits`, but without `name`, and with `duration`, the time after
   * which the limit ends.
   */
  limit(body: Readonly<Record<string, unknown>>, operator: Operator): Outcome {
    const { duration, reason: _reason, ...wanted } = body;
    return this.#journaled("limit", "", operator, this.#limit(duration, wanted, operator));
  }

  /** Removes a limit that an operator has set. `id`: the limit's number. */
  unlimit(id: string, operator: Operator): Outcome {
    return this.#journaled("unlimit", id, operator, this.#unlimit(id, operator));
  }

  async reload(operator: Operator): Promise<Outcome> {
    return this.#journaled("reload", "", operator, await this.#reload());
  }

  /** Journals that an operation was refused, here or by the admin API. */
  refuse(operation: string, target: string, { by }: Operator, reason: string): void {
    this.#parts.journal.write({ kind: "operation.refused", operation, target, by, reason });
  }

  #journaled(operation: string, target: string, operator: Operator, outcome: Outcome): Outcome {
    const { journal } = this.#parts;
    if (outcome instanceof Failure) this.refuse(operation, target, operator, outcome.message);
    else journal.write({ kind: "operation.done", operation, target, ...operator, outcome });
    return outcome;
  }

  #drain(name: string, { by }: Operator): Outcome {
    const backends = this.#backendsWith(name);
    if (backends === undefined) return this.#unknown(name);
    if (backends.factsOf(name).isDrained) return `${name} was drained already`;
    const others = backends.views.filter((view) => view.name !== name);
    // If no other backend is ready, new requests would still go to the drained backend. The operator might stop it,
    // because it is shown as drained.
    if (!others.some(({ state }) => state === "ready"))
      return new Failure("no-backend", "proxy", `Cannot drain ${name}: no other backend is ready`);
    backends.learn(name, { kind: "drain", isDrained: true, by });
    return `${name} is draining: no new requests; its watches move gradually`;
  }

  #undrain(name: string, { by }: Operator): Outcome {
    const backends = this.#backendsWith(name);
    if (backends === undefined) return this.#unknown(name);
    if (!backends.factsOf(name).isDrained) return `${name} was not drained`;
    backends.learn(name, { kind: "drain", isDrained: false, by });
    const state = backends.stateOf(name) ?? "unknown";
    return `${name} is no longer drained: it is ${state}`;
  }

  /** Moves those of this process's watches that have this audit ID and can be moved. Writes no entry to the journal. */
  moveHere(auditId: string): Outcome {
    const found = this.#parts
      .paths()
      .flatMap(({ exchanges, migrations }) =>
        exchanges.live
          .filter(({ context }) => context.kind === "watch" && context.auditId === auditId)
          .map(({ watch }) => ({ watch, migrations })),
      );
    if (found.length === 0) return new Failure("misdirected", "client", "Watch not found");
    const movable = found.flatMap(({ watch, migrations }) =>
      watch?.mayHedge === true ? [{ watch, migrations }] : [],
    );
    if (movable.length === 0)
      return new Failure("bad-request", "client", "Cannot move the watch now: events could be lost");
    for (const { watch, migrations } of movable) migrations.leave(watch, "operator");
    return `${movable.length} of ${found.length} watches move as soon as another backend can continue them`;
  }

  #limit(duration: unknown, wanted: object, operator: Operator): Outcome {
    const ms = limitDuration(typeof duration === "string" ? duration : "");
    if (ms instanceof Failure) return ms;
    const limit = this.#parts.limits.add(wanted, operator, ms);
    if (limit instanceof Failure) return limit;
    const until = dateOf(limit.origin?.endsMs ?? 0).toISOString();
    return `${titleOf(limit)} is in force until ${until}: ${limit.toString()}`;
  }

  #unlimit(id: string, { by }: Operator): Outcome {
    const limit = this.#parts.limits.remove(id, by);
    if (limit === undefined) return new Failure("misdirected", "client", `There is no limit "${id}"`);
    if (limit instanceof Failure) return limit;
    return `${titleOf(limit)} has ended; it has refused ${limit.refused} requests`;
  }

  async #reload(): Promise<Outcome> {
    const { reload } = this.#parts;
    if (reload === undefined) return new Failure("bad-request", "client", "No configuration file to reload");
    const { problems, waiting } = await reload();
    if (problems.length > 0) return new Failure("bad-file", "client", problems.join("; "));
    const late = waiting.length === 0 ? "" : `; ${waiting.join(", ")} effective after a restart`;
    return `Configuration reloaded${late}`;
  }

  #backendsWith(name: string): OperatedPath["backends"] | undefined {
    return this.#parts.paths().find(({ backends }) => backends.stateOf(name) !== undefined)?.backends;
  }

  /** The failure lists the first backends: with several clusters, an operator may forget the name of the cluster. */
  #unknown(name: string): Failure {
    const all = this.#parts.paths().flatMap(({ backends }) => backends.views.map((view) => view.name));
    const more = all.length > mostNames ? `, and ${all.length - mostNames} more` : "";
    const names = all.slice(0, mostNames).join(", ");
    const known = names === "" ? "there are none" : `there is ${names}${more}`;
    return new Failure("misdirected", "client", `There is no backend "${name}": ${known}`);
  }
}

/** Maximum number of backends that a message names, so that it remains one line. */
const mostNames = 8;
