/**
 * Starts the process of a worker, and passes sockets to it. No other file of src/fleet/workers uses Node's child processes.
 */
import { type SendHandle, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { ownModule } from "../../ops/program/own-files.ts";

/** A process of a worker, as the parent sees it. */
export type WorkerProcess = {
  readonly pid: number;
  /** The byte stream over which both processes exchange messages (channel.ts). */
  readonly stream: Duplex;
  /**
   * Passes a client's socket to the process, and closes it in the parent. `listener`: the name of the listener that
   * accepted the socket. Returns false if the socket is closed already, so that the process will not get it.
   */
  pass(listener: string, socket: Socket): boolean;
  /**
   * Takes back and returns the sockets that were given to `pass` but that Node has not sent yet. Node sends a socket
   * only after the process has confirmed the previous one.
   */
  takeUnsent(): readonly UnsentSocket[];
  kill(): void;
  /** Calls `run` once, with the reason, when the process has ended or could not be started. */
  onEnd(run: (reason: string) => void): void;
};

export type UnsentSocket = { readonly listener: string; readonly socket: Socket };

const file = ownModule("src/ops/cli/serve/worker-main");

/** Descriptor of the byte stream for messages in the worker. Sockets arrive over Node's own IPC channel. */
export const messagesDescriptor = 3;

export function startWorkerProcess(): WorkerProcess {
  const child = spawn(process.execPath, [...process.execArgv, file], {
    stdio: ["ignore", "inherit", "inherit", "pipe", "ipc"],
    serialization: "json",
  });
  const stream = child.stdio[messagesDescriptor];
  const passed = new Map<Socket, string>();
  return {
    pid: child.pid ?? 0,
    // If the process could not be started, it has no stream. An inactive stream is used instead, and `onEnd` reports
    // the failure.
    stream: stream instanceof Duplex ? stream : new Duplex({ read() {}, write() {} }),
    pass(listener, socket) {
      const handle: unknown = Reflect.get(socket, "_handle");
      if (!isHandle(handle)) return false;
      passed.set(socket, listener);
      if (!child.connected) return true;
      child.send({ listener }, handle, {}, () => {
        // If `takeUnsent` has taken the socket back, another worker gets the socket, so it must stay open.
        if (passed.delete(socket)) socket.destroy();
      });
      return true;
    },
    takeUnsent() {
      const unsent = Array.from(passed, ([socket, listener]) => ({ listener, socket }));
      passed.clear();
      return unsent;
    },
    kill: () => child.kill("SIGKILL"),
    onEnd: (run) => {
      let isOver = false;
      const end = (reason: string): void => {
        if (isOver) return;
        isOver = true;
        run(reason);
      };
      child.on("exit", (code, signal) => end(signal ?? `exit code ${code}`));
      child.on("error", (error) => {
        // This event is also emitted if a socket could not be sent. The process may then still run, but would get no
        // further sockets, so it is killed.
        child.kill("SIGKILL");
        end(error.message);
      });
    },
  };
}

/**
 * True for the handle of an open socket. The handle is sent in place of the socket, and the socket is then closed in
 * this process. If the socket itself were sent, Node would keep it open until the other process confirms it, and
 * forever if the other process ends first (lib/internal/child_process.js, `disconnect`).
 */
function isHandle(handle: unknown): handle is SendHandle {
  return typeof handle === "object" && handle !== null;
}
