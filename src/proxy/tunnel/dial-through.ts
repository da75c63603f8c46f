/**
 * Opens a socket to a backend for a passthrough connection. An open TCP connection proves little, because the kernel of
 * a frozen process still accepts connections. While the client has sent only a ClientHello, which may be sent twice,
 * the proxy therefore uses the first backend that sends a byte. If a backend is silent for so long that it is suspect,
 * the proxy dials the next one, too.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { stallAwareTimeout } from "../../health/stall-aware-clock.ts";
import { Retries } from "../../upstream/pool/retry-policy.ts";

/** A backend's socket. For a passthrough connection, the socket is paused, and the backend's first bytes are unread. */
export type DialledSocket = { readonly socket: Socket; readonly backend: string };

export type DialThroughParts = {
  readonly clock: Clock;
  readonly next: (retries: Retries) => string | Failure;
  readonly connect: (backend: string) => Socket;
  /** Returns the ms for which a backend may be silent before it is suspect. */
  readonly doubtMs: (backend: string) => number;
  /**
   * Takes a hedge from the budget. Returns true if another backend may be tried while the first one has not answered.
   */
  readonly mayHedge: () => boolean;
};

export type Opening = {
  readonly bytes: Buffer;
  /** True if the client's first bytes are only a ClientHello. They may then be sent to more than one backend. */
  readonly isRepeatable: boolean;
};

/**
 * Resolves with a backend's socket or with a Failure, after at most `limits.attempts` dials, and within
 * `limits.handshakeMs`.
 */
export function dialThrough(opening: Opening, parts: DialThroughParts): Promise<DialledSocket | Failure> {
  return new Promise((resolve) => new Race(opening, parts, resolve).start());
}

/** Events that end a socket. A backend whose socket ends before its first byte has not answered. */
const ends = ["error", "end", "close"] as const;

class Race {
  readonly #opening: Opening;
  readonly #parts: DialThroughParts;
  readonly #resolve: (outcome: DialledSocket | Failure) => void;
  readonly #retries = new Retries();
  #unansweredSockets: Socket[] = [];
  #failure: Failure | undefined;
  #isOver = false;
  #stopDoubt: () => void = () => {};
  #stopWait: () => void = () => {};

  constructor(
    opening: Opening,
    parts: DialThroughParts,
    resolve: (outcome: DialledSocket | Failure) => void,
  ) {
    this.#opening = opening;
    this.#parts = parts;
    this.#resolve = resolve;
  }

  start(): void {
    const late = (): void => {
      const names = this.#retries.tried.join(", ");
      this.#finish(
        new Failure("backend-lost", "backend", `No answer in ${limits.handshakeMs} ms from ${names}`),
      );
    };
    this.#stopWait = stallAwareTimeout(this.#parts.clock, limits.handshakeMs, late);
    this.#attempt();
  }

  #attempt(): void {
    const backend = this.#retries.isSpent ? undefined : this.#parts.next(this.#retries);
    if (backend === undefined || backend instanceof Failure) {
      // No further attempt is possible. If a backend may still answer on the socket of an earlier attempt, waits for
      // that.
      const failure = this.#failure ?? backend;
      if (this.#unansweredSockets.length === 0 && failure !== undefined) this.#finish(failure);
      return;
    }
    // The backend counts as failed until it answers. A hedge is thus sent to another backend.
    this.#retries.failed(backend);
    this.#run(backend);
    this.#stopDoubt();
    this.#stopDoubt = stallAwareTimeout(this.#parts.clock, this.#parts.doubtMs(backend), () => {
      if (this.#parts.mayHedge()) this.#attempt();
    });
  }

  #run(backend: string): void {
    const { bytes, isRepeatable } = this.#opening;
    const socket = this.#parts.connect(backend);
    this.#unansweredSockets.push(socket);
    const answered = (chunk?: Buffer): void => {
      if (this.#isOver) return;
      socket.off("data", answered);
      for (const end of ends) socket.off(end, failed);
      socket.pause();
      if (chunk !== undefined) socket.unshift(chunk);
      this.#unansweredSockets = this.#unansweredSockets.filter((one) => one !== socket);
      this.#finish({ socket, backend });
    };
    const failed = (reason?: unknown): void => {
      if (this.#isOver || !this.#unansweredSockets.includes(socket)) return;
      this.#unansweredSockets = this.#unansweredSockets.filter((one) => one !== socket);
      socket.destroy();
      const { code, message } = failureFrom(
        reason instanceof Error ? reason : "the connection was closed",
        "backend",
      );
      this.#failure = new Failure(code, "backend", `Cannot reach backend ${backend}: ${message}`, reason);
      this.#attempt();
    };
    for (const end of ends) socket.on(end, failed);
    socket.write(bytes);
    if (isRepeatable) socket.on("data", answered);
    else socket.once("connect", () => answered());
  }

  #finish(outcome: DialledSocket | Failure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopDoubt();
    this.#stopWait();
    for (const socket of this.#unansweredSockets) socket.destroy();
    this.#resolve(outcome);
  }
}
