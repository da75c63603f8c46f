/** Starts the process of a worker, and passes sockets to it. The only file that knows Node's child processes. */
import { type SendHandle, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { ownModule } from "../program/own-files.ts";

/** A worker's process, as the parent sees it. */
export type WorkerProcess = {
  readonly pid: number;
  /** The stream of messages. */
  readonly stream: Duplex;
  /** Passes a client's socket, and closes it here. `listener`: the name of the listener that accepted it. */
  pass(listener: string, socket: Socket): void;
  /** Takes back the passed sockets that wait until the process has confirmed an earlier one. */
  takeUnsent(): readonly UnsentSocket[];
  kill(): void;
  /** Calls `run` once with the reason when the process has ended, or could not be started. */
  onEnd(run: (reason: string) => void): void;
};

export type UnsentSocket = { readonly listener: string; readonly socket: Socket };

const file = ownModule("cli/serve/worker-main");

/** Descriptor of the stream of messages in the worker. Sockets come over Node's own channel. */
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
    // Without a process there is no stream. `onEnd` then says why.
    stream: stream instanceof Duplex ? stream : new Duplex({ read() {}, write() {} }),
    pass(listener, socket) {
      passed.set(socket, listener);
      const handle: unknown = Reflect.get(socket, "_handle");
      if (!child.connected || !isHandle(handle)) return;
      child.send({ listener }, handle, {}, () => {
        // If the process has ended meanwhile, another one has got the socket.
        if (passed.delete(socket)) socket.destroy();
      });
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
        // Also a socket that could not be passed: the process may run on, but would get no further sockets.
        child.kill("SIGKILL");
        end(error.message);
      });
    },
  };
}

/**
 * True for the handle of an open socket. It is sent in place of the socket, which is then closed here: Node would keep a
 * sent socket open until the other process confirms it, and for ever if that process ends before
 * (lib/internal/child_process.js, `disconnect`).
 */
function isHandle(handle: unknown): handle is SendHandle {
  return typeof handle === "object" && handle !== null;
}
