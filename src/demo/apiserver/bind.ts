/** Loopback ports for the demo's servers. */
import type { Server } from "node:net";
import { type Failure, failureFrom } from "../../base/failure.ts";

/** Binds a loopback port, default: any free one, and returns it. A Failure for one that is in use, for example. */
export async function bindLoopback(server: Server, port = 0): Promise<number | Failure> {
  const failure = await new Promise<Failure | undefined>((resolve) => {
    server.once("error", (error) => resolve(failureFrom(error, "proxy")));
    server.listen(port, "127.0.0.1", () => resolve(undefined));
  });
  if (failure !== undefined) return failure;
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : 0;
}
