/**
 * Listening sockets that outlive a process. systemd (sd_listen_fds(3)) or a predecessor process passes them to the
 * proxy, and the proxy passes them on to its successor. Clients in the kernel's accept queue of such a socket are not
 * lost. With SO_REUSEPORT instead, the clients in the queue of the ending process would get a reset.
 */
import { closeSync } from "node:fs";
import type { PassedHandle } from "./handle-channel.ts";

/** Descriptors 0, 1 and 2 are stdin, stdout and stderr. */
const firstDescriptor = 3;

/** Name of the admin port's socket. No listener can have this name: listener names have no upper-case letters. */
export const adminName = "metricsAddress";

/** A listening socket: the number of its descriptor, or the handle that another process has passed. */
export type InheritedSocket = number | PassedHandle;

/**
 * Environment variable that is set for a successor if systemd holds the sockets, too. The successor cannot see this
 * from LISTEN_PID.
 */
const keptVariable = "WATCHKEEPER_SOCKETS_KEPT";

/** The inherited sockets that no listener has taken yet. */
export class Descriptors {
  readonly #byName: Map<string, InheritedSocket>;
  /**
   * True if systemd keeps the sockets open after this process has ended. In this case, new clients wait until another
   * process starts.
   */
  readonly areKept: boolean;

  constructor(byName: Iterable<readonly [string, number]> = [], areKept = false) {
    this.#byName = new Map(byName);
    this.areKept = areKept;
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  /**
   * Adds a socket that another process has passed. Closes the socket instead if the set already has one of this name,
   * or if it is the socket of the admin port, which no listener uses.
   */
  add(name: string, handle: PassedHandle): void {
    if (this.#byName.has(name) || name === adminName) handle.close();
    else this.#byName.set(name, handle);
  }

  /**
   * Returns the socket for this listener, and removes it from the set. If the set has a single descriptor, any listener
   * may take it, because systemd names the socket after the unit.
   */
  take(name: string): InheritedSocket | undefined {
    const [[only, socket] = []] = this.#byName.size === 1 && name !== adminName ? this.#byName : [];
    const key = this.#byName.has(name) || typeof socket !== "number" ? name : only;
    const taken = key === undefined ? undefined : this.#byName.get(key);
    if (key !== undefined) this.#byName.delete(key);
    return taken;
  }

  /** Closes the sockets that no listener has taken. Otherwise clients would wait in their accept queues for ever. */
  closeRest(): void {
    for (const socket of this.#byName.values()) {
      try {
        if (typeof socket === "number") closeSync(socket);
        else socket.close();
      } catch {
        // The descriptor was not open: there is nothing to close.
      }
    }
    this.#byName.clear();
  }
}

/**
 * Returns the sockets passed to process `pid`. Removes the environment variables that describe them, so that no child
 * process uses the sockets.
 */
export function passedIn(environment: NodeJS.ProcessEnv, pid: number): Descriptors {
  const { LISTEN_FDS: count = "", LISTEN_FDNAMES: names = "", LISTEN_PID: owner } = environment;
  const areKept = owner !== undefined || environment[keptVariable] !== undefined;
  for (const name of ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", keptVariable])
    Reflect.deleteProperty(environment, name);
  // systemd states which process gets the sockets. A predecessor does not, because it cannot know its successor's pid.
  const isOurs = owner === undefined || owner === String(pid);
  if (!isOurs || !/^\d{1,3}$/.test(count)) return new Descriptors();
  const called = names.split(":");
  return new Descriptors(
    Array.from({ length: Number(count) }, (_, index) => [
      called[index] || `socket ${index}`,
      firstDescriptor + index,
    ]),
    areKept,
  );
}

/** Returns the environment variables that pass these sockets to a successor, as descriptors 3, 4, … in this order. */
export function passedOn(names: readonly string[], areKept: boolean): Readonly<Record<string, string>> {
  const kept = areKept ? { [keptVariable]: "1" } : {};
  return { LISTEN_FDS: String(names.length), LISTEN_FDNAMES: names.join(":"), ...kept };
}

/**
 * Returns the descriptor of a listening server, from a private field of Node. Undefined if the server is not listening,
 * or if this version of Node has no such field. In both cases, no handover is possible.
 */
export function descriptorOf(server: object): number | undefined {
  const handle: unknown = Reflect.get(server, "_handle");
  if (typeof handle !== "object" || handle === null || !("fd" in handle)) return undefined;
  return typeof handle.fd === "number" && handle.fd >= 0 ? handle.fd : undefined;
}
