/** Starts servers on loopback ports, in this process or in a child process. */
import { type ChildProcess, fork } from "node:child_process";
import type { Server } from "node:net";
import { Failure, failureFrom } from "../../base/failure.ts";

/** Binds a loopback port, default: any free one. Returns it, or a Failure, for example if it is in use. */
export async function bindLoopback(server: Server, port = 0): Promise<number | Failure> {
  const failure = await new Promise<Failure | undefined>((resolve) => {
    server.once("error", (error) => resolve(failureFrom(error, "proxy")));
    server.listen(port, "127.0.0.1", () => resolve(undefined));
  });
  if (failure !== undefined) return failure;
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : 0;
}

/** Number of characters of a child's stderr that are kept: the last ones. */
const stderrChars = 4_096;

export type ServerProcess = {
  readonly child: ChildProcess;
  /** The port that the child reports, or the reason why it has none. */
  readonly port: Promise<number | Failure>;
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<string>;
};

/** Starts the program in `file`, and sends it its first order. */
export function startServerProcess(file: string, order: object): ServerProcess {
  const child = fork(file, [], {
    serialization: "advanced",
    execArgv: ["--disable-sigusr1"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-stderrChars)));
  const ended = new Promise<string>((resolve) => {
    child.on("error", ({ message }) => resolve(message));
    // Unlike "exit", "close" waits until the child's stderr is read to the end.
    child.on("close", (code, signal) =>
      resolve(/^\w*Error: .*$/m.exec(stderr)?.[0] ?? signal ?? `exit code ${code}`),
    );
  });
  const reported = new Promise<number | string>((resolve) => {
    child.once("message", (outcome: number | string) => resolve(outcome));
    void ended.then(resolve);
  });
  child.send(order, () => {}); // "close" follows a failure.
  const port = reported.then((outcome) =>
    typeof outcome === "number" ? outcome : new Failure("no-backend", "proxy", outcome),
  );
  return { child, port, ended };
}

/** Reports the outcome of an order. Called in the child. */
export async function reportToParent(outcome: Promise<number | Failure>): Promise<void> {
  const bound = await outcome;
  // The parent may have been killed meanwhile. Without a callback, Node would print the error.
  if (process.connected) process.send?.(bound instanceof Failure ? bound.message : bound, () => {});
}

/** Ends this process when its parent ends, and not before. Called in the child. */
export function endWithParent(): void {
  // If the parent was killed while this child loaded its modules, "disconnect" has been emitted already.
  if (!process.connected) process.exit();
  process.on("disconnect", () => process.exit());
  // Ctrl-C sends SIGINT to all processes of the terminal. The parent needs this one while it drains, and ends it then.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
}
