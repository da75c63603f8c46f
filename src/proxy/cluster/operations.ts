/**
 * What an operator may do at runtime: drain and undrain a backend, move a watch, reload the configuration. Each
 * operation is journaled with the operator's name, whether it was done or refused.
 */
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { DataPath } from "./data-path.ts";

/** `by`: the operator's name and origin, as the operator gave them. */
export type Operator = { readonly by: string; readonly reason: string };

type OperatedPath = Pick<DataPath, "backends" | "exchanges" | "migrations">;

export type OperationsParts = {
  readonly journal: Journal;
  /** The paths of all clusters (path.ts). Backend names are unique across clusters. */
  readonly paths: () => readonly OperatedPath[];
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
   * Drains a backend, if another one is ready: new requests go elsewhere, and its watches move gradually. exec, attach,
   * port-forward and `logs -f` stay until they end. The drain ends with an undrain, the backend's removal or the
   * proxy's end.
   */
  drain(name: string, operator: Operator): Outcome {
    return this.#journaled("drain", name, operator, this.#drain(name, operator));
  }

  undrain(name: string, operator: Operator): Outcome {
    return this.#journaled("undrain", name, operator, this.#undrain(name, operator));
  }

  /** Moves each watch with this audit id that can move. A client may use one id for several requests. */
  move(auditId: string, operator: Operator): Outcome {
    return this.#journaled("move", auditId, operator, this.#move(auditId));
  }

  async reload(operator: Operator): Promise<Outcome> {
    return this.#journaled("reload", "", operator, await this.#reload());
  }

  /** Journals that an operation was refused for a reason that has nothing to do with its target. */
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
    if (backends === undefined) return unknown(name);
    if (backends.factsOf(name).isDrained) return `${name} was drained already`;
    const others = backends.views.filter((view) => view.name !== name);
    // Without another ready backend, new requests would still go to this one, but the operator might stop it now.
    if (!others.some(({ state }) => state === "ready"))
      return new Failure("no-backend", "proxy", `Cannot drain ${name}: no other backend is ready`);
    backends.learn(name, { kind: "drain", isDrained: true, by });
    return `${name} is draining: no new requests; its watches move gradually`;
  }

  #undrain(name: string, { by }: Operator): Outcome {
    const backends = this.#backendsWith(name);
    if (backends === undefined) return unknown(name);
    if (!backends.factsOf(name).isDrained) return `${name} was not drained`;
    backends.learn(name, { kind: "drain", isDrained: false, by });
    const state = backends.stateOf(name) ?? "unknown";
    return `${name} is no longer drained: it is ${state}`;
  }

  #move(auditId: string): Outcome {
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
}

function unknown(name: string): Failure {
  return new Failure("misdirected", "client", `There is no backend "${name}"`);
}
