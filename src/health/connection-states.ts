/**
 * The states of the connections that several processes have to the same backends. A backend is silent or lost only if
 * no process has a better connection to it. Otherwise only the path of a single process is at fault (D6).
 */
import type { ConnectionState } from "./backend.ts";
import type { Evidence } from "./evidence.ts";

/** The states in order, from the worst to the best. */
const order: readonly ConnectionState[] = ["none", "lost", "left", "silent", "going", "answering"];

const stateAfter: Partial<Record<Evidence["kind"], ConnectionState>> = {
  "connection-opened": "answering",
  "connections-answer": "answering",
  "connections-going": "going",
  "connections-silent": "silent",
  "connections-lost": "lost",
};

/** Returns the state of a process's connections after this evidence from the process. */
export function connectionsAfter(before: ConnectionState, { kind }: Evidence): ConnectionState {
  const after = stateAfter[kind] ?? before;
  return after === "lost" && (before === "going" || before === "left") ? "left" : after;
}

function isWorse(one: ConnectionState, other: ConnectionState): boolean {
  return order.indexOf(one) < order.indexOf(other);
}

export class ConnectionStates {
  /**
   * The connection states, by backend and then by process. The numbers of backends and processes limit the size of this
   * map.
   */
  readonly #byBackend = new Map<string, Map<number, ConnectionState>>();

  /**
   * Records evidence from a process. Returns the evidence if it applies to the backend as a whole. If another process
   * has a better connection, returns evidence of that connection's state if the best state has become worse; otherwise
   * undefined.
   */
  learn(process: number, backend: string, evidence: Evidence): Evidence | undefined {
    const states = this.#byBackend.get(backend) ?? new Map<number, ConnectionState>();
    this.#byBackend.set(backend, states);
    if (stateAfter[evidence.kind] === undefined) return evidence;
    const before = bestOf(states);
    const after = connectionsAfter(states.get(process) ?? "none", evidence);
    states.set(process, after);
    const best = bestOf(states);
    return isWorse(after, best) ? worsened(before, best) : evidence;
  }

  /**
   * Records that a process has closed its connections to the backend on its own initiative. Returns evidence if only
   * worse connections remain in other processes; otherwise undefined.
   */
  unconnected(process: number, backend: string): Evidence | undefined {
    const states = this.#byBackend.get(backend);
    if (states === undefined || !states.has(process)) return undefined;
    const before = bestOf(states);
    states.delete(process);
    return worsened(before, bestOf(states));
  }

  /**
   * Forgets a process that has ended. Returns the resulting evidence, for each backend whose connection state has
   * changed.
   */
  ended(process: number): readonly (readonly [backend: string, Evidence])[] {
    return Array.from(this.#byBackend.keys()).flatMap((backend) => {
      const evidence = this.unconnected(process, backend);
      return evidence === undefined ? [] : [[backend, evidence] as const];
    });
  }

  /** True if a process has a connection to the backend that answers. */
  isAnswering(backend: string): boolean {
    const states = this.#byBackend.get(backend);
    return states !== undefined && bestOf(states) === "answering";
  }

  reconcile(backends: readonly string[]): void {
    for (const backend of this.#byBackend.keys())
      if (!backends.includes(backend)) this.#byBackend.delete(backend);
  }
}

function bestOf(states: ReadonlyMap<number, ConnectionState>): ConnectionState {
  return Array.from(states.values()).reduce((best, one) => (isWorse(best, one) ? one : best), "none");
}

/**
 * Returns evidence that the best connection state of any process has become worse: from `before` to `after`. Returns
 * undefined if it has not become worse. Also returns undefined if no process has a connection any more, because the end
 * of a process says nothing about the backend.
 */
function worsened(before: ConnectionState, after: ConnectionState): Evidence | undefined {
  if (!isWorse(after, before) || after === "none") return undefined;
  if (after === "silent") return { kind: "connections-silent", ms: 0, limitMs: 0 };
  if (after === "going") return { kind: "connections-going" };
  return { kind: "connections-lost", by: "socket", reason: "no other process has a better connection" };
}
