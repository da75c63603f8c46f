/**
 * Listening sockets that outlive a process: passed in by systemd (sd_listen_fds(3)) or by a predecessor, and passed on to
 * a successor. The kernel's accept queue stays with the socket, where SO_REUSEPORT would reset the clients in the queue
 * of the process that ends.
 */
import { closeSync } from "node:fs";

/** After stdin, stdout and stderr. */
const firstDescriptor = 3;

/** The port of metrics and probes, among the listeners' names: a listener's name has no upper-case letter. */
export const adminName = "metricsAddress";

/** Sockets that were passed in, until a listener takes each. */
export class Descriptors {
  readonly #byName: Map<string, number>;

  constructor(byName: Iterable<readonly [string, number]> = []) {
    this.#byName = new Map(byName);
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  /** The socket for this listener, once. A single one may have any name: systemd gives it the unit's. */
  take(name: string): number | undefined {
    const [only] = this.#byName.size === 1 && name !== adminName ? this.#byName.keys() : [];
    const key = this.#byName.has(name) ? name : only;
    if (key === undefined) return undefined;
    const descriptor = this.#byName.get(key);
    this.#byName.delete(key);
    return descriptor;
  }

  /** Closes the sockets that no listener has taken: clients would wait in their accept queues for ever. */
  closeRest(): void {
    for (const descriptor of this.#byName.values()) {
      try {
        closeSync(descriptor);
      } catch {
        // The descriptor was not open.
      }
    }
    this.#byName.clear();
  }
}

/** The sockets passed to process `pid`, by its environment. Removes the variables, so that no child process uses them. */
export function passedIn(environment: NodeJS.ProcessEnv, pid: number): Descriptors {
  const { LISTEN_FDS: count = "", LISTEN_FDNAMES: names = "", LISTEN_PID: owner } = environment;
  for (const name of ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID"])
    Reflect.deleteProperty(environment, name);
  // A predecessor does not know the new pid and names none; systemd names the pid, and the sockets are for that process
  // only.
  const isOurs = owner === undefined || owner === String(pid);
  if (!isOurs || !/^\d{1,3}$/.test(count)) return new Descriptors();
  const called = names.split(":");
  return new Descriptors(
    Array.from({ length: Number(count) }, (_, index) => [
      called[index] || `socket ${index}`,
      firstDescriptor + index,
    ]),
  );
}

/** The environment of a successor that gets these sockets, in this order, after stderr. */
export function passedOn(names: readonly string[]): Readonly<Record<string, string>> {
  return { LISTEN_FDS: String(names.length), LISTEN_FDNAMES: names.join(":") };
}

/**
 * A listening server's descriptor. Node has no public name for it. Undefined: the server is not listening, or Node has
 * changed; then a handover is impossible, and that is reported.
 */
export function descriptorOf(server: object): number | undefined {
  const handle: unknown = Reflect.get(server, "_handle");
  if (typeof handle !== "object" || handle === null || !("fd" in handle)) return undefined;
  return typeof handle.fd === "number" && handle.fd >= 0 ? handle.fd : undefined;
}
