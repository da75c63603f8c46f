/**
 * A loopback port that answers no SYN, like a host behind a firewall that drops packets: its accept queue is full, and
 * its process accepts no connection.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Listens with a backlog of one, prints its port, and then blocks its thread for ever. */
const program = `
  const server = require("node:net").createServer();
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    process.stdout.write(String(server.address().port));
    setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 50);
  });
`;

export async function unansweredPort(): Promise<{ readonly port: number; readonly stop: () => void }> {
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [text] = await once(child.stdout, "data");
  const port = Number(text);
  const queued: Socket[] = [];
  // A backlog of one accepts two connections. A third one that stays in connecting proves that the queue is full.
  while (queued.filter(({ connecting }) => connecting).length === 0 && queued.length < 20) {
    queued.push(connect(port, "127.0.0.1").on("error", () => {}));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const stop = (): void => {
    for (const socket of queued) socket.destroy();
    child.kill("SIGKILL");
  };
  return { port, stop };
}
