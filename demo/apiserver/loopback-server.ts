/** Starts servers on loopback ports, in this process or in a child process. */
import { type ChildProcess, fork } from "node:child_process";
import type { Server } from "node:net";
import { Failure, failureFrom } from "../../src/base/failure.ts";

/** Binds a loopback port (0: any free one). Returns the port, or a Failure, for example if the port is in use. */
export async function bindLoopback(server: Server, port = 0): Promise<number | Failure> {
  const failure = await new Promise<Failure | undefined>((resolve) => {
    server.once("error", (error) => resolve(failureFrom(error, "proxy")));
    server.listen(port, "127.0.0.1", () => resolve(undefined));
  });
  if (failure !== undefined) return failure;
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : 0;
}

const keptStderrChars = 4_096;

export type ServerProcess = {
  readonly child: ChildProcess;
  /** Resolves with the port that the child reports, or with a Failure that says why the child has no port. */
  readonly port: Promise<number | Failure>;
  /** Resolves when the child process has ended, with the reason. */
  readonly ended: Promise<string>;
};

/** Starts a child process with the program `file`, and sends it `order` as the first message. */
export function startServerProcess(file: string, order: object): ServerProcess {
  const child = fork(file, [], {
    serialization: "advanced",
    execArgv: ["--disable-sigusr1"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-keptStderrChars)));
  const ended = new Promise<string>((resolve) => {
    child.on("error", ({ message }) => resolve(message));
    // Waits for "close" and not for "exit", because only "close" means that the child's stderr was read to its end.
    child.on("close", (code, signal) =>
      resolve(/^\w*Error: .*$/m.exec(stderr)?.[0] ?? signal ?? `exit code ${code}`),
    );
  });
  const reported = new Promise<number | string>((resolve) => {
    child.once("message", (outcome: number | string) => resolve(outcome));
    void ended.then(resolve);
  });
  child.send(order, () => {}); // A failure to send is ignored, because "close" follows.
  const port = reported.then((outcome) =>
    typeof outcome === "number" ? outcome : new Failure("no-backend", "proxy", outcome),
  );
  return { child, port, ended };
}

/**
 * Called in the child process. Sends the child's port to the parent process, or the reason why the child has no port.
 */
export async function reportToParent(outcome: Promise<number | Failure>): Promise<void> {
  const bound = await outcome;
  // Sending fails if the parent has been killed. The empty callback keeps Node from printing this error.
  if (process.connected) process.send?.(bound instanceof Failure ? bound.message : bound, () => {});
}

/** Called in the child process. Afterwards, this process ends when its parent ends, and ignores SIGINT and SIGTERM. */
export function endWithParent(): void {
  // "disconnect" may have been emitted already, if the parent was killed while this process loaded its modules.
  if (!process.connected) process.exit();
  process.on("disconnect", () => process.exit());
  // Ctrl-C sends SIGINT to all processes of a terminal. This process ignores it, because the parent's drain still needs
  // this server.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
}
