/**
 * Listening sockets that outlive a process: passed in by systemd (sd_listen_fds(3)) or by a predecessor, and passed on
 * to a successor. The kernel's queue of clients that wait to be accepted stays with the socket, where SO_REUSEPORT
 * would reset those in the queue of the one that goes.
 */
import { closeSync } from "node:fs";

/** After stdin, stdout and stderr. */
const firstDescriptor = 3;

/** The port of metrics and probes, among the listeners' names: a listener's has no upper-case letter. */
export const adminName = "metricsAddress";

/** Sockets that were passed in, until somebody takes each. */
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

  /** Nobody listens there any more: who connected would wait in the queue for ever. */
  closeRest(): void {
    for (const descriptor of this.#byName.values()) {
      try {
        closeSync(descriptor);
      } catch {
        // It was none of ours to begin with.
      }
    }
    this.#byName.clear();
  }
}

/** What was passed to the process `pid`, as its environment says; it is taken out there, so that no child believes it. */
export function passedIn(environment: NodeJS.ProcessEnv, pid: number): Descriptors {
  const { LISTEN_FDS: count = "", LISTEN_FDNAMES: names = "", LISTEN_PID: owner } = environment;
  for (const name of ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID"])
    Reflect.deleteProperty(environment, name);
  // A predecessor does not know our id beforehand and names none; systemd does, and means nobody else.
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

/** What a successor's environment says of the sockets that it is given, in this order, behind stderr. */
export function passedOn(names: readonly string[]): Readonly<Record<string, string>> {
  return { LISTEN_FDS: String(names.length), LISTEN_FDNAMES: names.join(":") };
}

/**
 * A listening server's descriptor. Node has no public name for it; undefined says that it is
 * not listening, or that Node has changed: then there is no handing over, and that is told.
 */
export function descriptorOf(server: object): number | undefined {
  const handle: unknown = Reflect.get(server, "_handle");
  if (typeof handle !== "object" || handle === null || !("fd" in handle)) return undefined;
  return typeof handle.fd === "number" && handle.fd >= 0 ? handle.fd : undefined;
}
