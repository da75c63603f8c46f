/** The process of a worker (src/fleet/workers): serves the sockets that its parent passes to it. */
import { Socket } from "node:net";
import { wallClock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { isRecord, textAt } from "../../../base/json.ts";
import { Journal } from "../../../events/journal.ts";
import { WorkerLink } from "../../../fleet/workers/worker-link.ts";
import { messagesDescriptor } from "../../../fleet/workers/worker-process.ts";
import { startWatchkeeper } from "../../../main.ts";
import { containFaults } from "./signals.ts";

const link = new WorkerLink(wallClock, new Socket({ fd: messagesDescriptor }));
const journal = new Journal(wallClock);
const faulty = new AbortController();
link.forward(journal);
containFaults(journal, () => {
  link.send({ kind: "leaving" });
  faulty.abort();
});
// These signals are ignored, because a terminal or a supervisor may send them to all processes. Only the parent handles
// them, and then tells its workers what to do.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"]) process.on(signal, () => {});
process.on("message", (message: unknown, handle: unknown) => {
  if (!isRecord(message)) return;
  const listener = textAt(message, "listener");
  // Without a free descriptor (EMFILE), the kernel drops the socket and delivers the message alone.
  if (typeof handle !== "object" || handle === null) return link.accept(listener, undefined);
  // The option `handle` of a socket is undocumented. Node itself uses it for sockets that it receives over IPC.
  const socket: unknown = Reflect.construct(Socket, [{ handle, readable: true, writable: true }]);
  if (!(socket instanceof Socket)) return;
  socket.setNoDelay(true);
  link.accept(listener, socket);
});

const { config } = await link.started;
const running = await startWatchkeeper(config, { journal, worker: link });
if (running instanceof Failure) {
  link.send({ kind: "failed", message: running.message });
  wallClock.after(100, () => process.exit(2));
} else {
  link.ready();
  const ownFault = new Promise<typeof config.drain>((resolve) => {
    faulty.signal.addEventListener("abort", () => resolve({ ...config.drain, shutdownDelayMs: 0 }));
  });
  const times = await Promise.race([link.drained, ownFault]);
  await running.stop(new AbortController().signal, false, times);
  link.stop();
  wallClock.after(100, () => process.exit(process.exitCode === 1 ? 1 : 0));
}
