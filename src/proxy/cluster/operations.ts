/**
 * What an operator may do while it runs: let a backend go and take it back, send a watch elsewhere, read the configuration
 * again. Each is told to the journal with who did it, whether it was done or not.
 */
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { Path } from "./path.ts";

/** Who asks, as they call themselves and from where, and what for. */
export type Operator = { readonly by: string; readonly reason: string };

type OperatedPath = Pick<Path, "backends" | "exchanges" | "migrations">;

export type OperationsParts = {
  readonly journal: Journal;
  /** Of each cluster: no two have a backend of one name. */
  readonly paths: () => readonly OperatedPath[];
  /** Undefined: there is no file. */
  readonly reload: (() => Promise<Reread>) | undefined;
};

/** How it ended that a configuration was read again. */
export type Reread = {
  /** Why it was not taken; none: it was. */
  readonly problems: readonly string[];
  /** What of it holds from the next start only, by its names in the file. */
  readonly waiting: readonly string[];
};

/** What was done, in a sentence, or why it was not. */
export type Outcome = string | Failure;

export class Operations {
  readonly #parts: OperationsParts;

  constructor(parts: OperationsParts) {
    this.#parts = parts;
  }

  /**
   * Nothing new goes there while another backend is ready, its watches move at leisure; exec, attach, port-forward and
   * `logs -f` stay until they end. It lasts until it is undone, the backend is removed, or this process ends.
   */
  drain(name: string, operator: Operator): Outcome {
    return this.#tell("drain", name, operator, this.#drain(name, operator));
  }

  undrain(name: string, operator: Operator): Outcome {
    return this.#tell("undrain", name, operator, this.#undrain(name, operator));
  }

  /** Every watch of this audit id, of which there is one unless its client chose it: elsewhere, where somebody is better. */
  move(auditId: string, operator: Operator): Outcome {
    return this.#tell("move", auditId, operator, this.#move(auditId));
  }

  async reload(operator: Operator): Promise<Outcome> {
    return this.#tell("reload", "", operator, await this.#reload());
  }

  /** Not done, for a reason that has nothing to do with what was asked for. */
  refuse(operation: string, target: string, { by }: Operator, reason: string): void {
    this.#parts.journal.write({ kind: "operation.refused", operation, target, by, reason });
  }

  #tell(operation: string, target: string, operator: Operator, outcome: Outcome): Outcome {
    const { journal } = this.#parts;
    if (outcome instanceof Failure) this.refuse(operation, target, operator, outcome.message);
    else journal.write({ kind: "operation.done", operation, target, ...operator, outcome });
    return outcome;
  }

  #drain(name: string, { by }: Operator): Outcome {
    const backends = this.#ownersOf(name);
    if (backends === undefined) return unknown(name);
    if (backends.held(name).isDrained) return `${name} was drained already`;
    const others = backends.views.filter((view) => view.name !== name);
    // New requests would go there all the same: better to say so than to let somebody stop it in good faith.
    if (!others.some(({ state }) => state === "ready"))
      return new Failure("no-backend", "proxy", `Cannot drain ${name}: no other backend is ready`);
    backends.learn(name, { kind: "told", isDrained: true, by });
    return `${name} is draining: no new requests; its watches move gradually`;
  }

  #undrain(name: string, { by }: Operator): Outcome {
    const backends = this.#ownersOf(name);
    if (backends === undefined) return unknown(name);
    if (!backends.held(name).isDrained) return `${name} was not drained`;
    backends.learn(name, { kind: "told", isDrained: false, by });
    const state = backends.views.find((view) => view.name === name)?.state ?? "unknown";
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

  /** The backends of the cluster that has one of this name. */
  #ownersOf(name: string): OperatedPath["backends"] | undefined {
    const all = this.#parts.paths().map(({ backends }) => backends);
    return all.find(({ views }) => views.some((view) => view.name === name));
  }
}

function unknown(name: string): Failure {
  return new Failure("misdirected", "client", `There is no backend "${name}"`);
}
