/**
 * Ports for servers that a test starts in other processes. They lie below the range from which the kernel takes the
 * ports of outgoing connections (32768 to 60999). A connection of another test could otherwise take such a port before
 * the server listens at it.
 */
import { once } from "node:events";
import { createServer } from "node:net";

const firstPort = 20_000;
const ports = 12_000;

/**
 * Returns a port of 127.0.0.1 that no process listens at. It is random, because several test files run at the same
 * time. Throws the error of a listen that fails for another reason.
 */
export async function freePort(): Promise<number> {
  const port = firstPort + Math.floor(Math.random() * ports);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (reason) {
    if (reason instanceof Error && "code" in reason && reason.code === "EADDRINUSE") return freePort();
    throw reason;
  }
  server.close();
  await once(server, "close");
  return port;
}

/** Returns `count` different ports. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const found = new Set<number>();
  while (found.size < count) found.add(await freePort());
  return [...found];
}
