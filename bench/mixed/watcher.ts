/** Opens watches, and checks that the version of each event follows that of the event before. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type ClientHttp2Session, constants } from "node:http2";
import { sleep } from "../processes.ts";
import { type Ground, head, open, pause } from "./ground.ts";

/**
 * Runs one client with `count` watches. Each is cancelled after 20 to 60 s and opened again. The client fails if an
 * event is missing.
 */
export async function watcher(ground: Ground, count: number): Promise<void> {
  const session = open(ground);
  await Promise.all(
    Array.from({ length: count }, async () => {
      while (!ground.isOver()) await watchOnce(ground, session);
    }),
  );
  session.close();
}

async function watchOnce(ground: Ground, session: ClientHttp2Session): Promise<void> {
  const { stopping, isOver, errors, done } = ground;
  const path = "/api/v1/namespaces/default/pods?watch=true&resourceVersion=1&timeoutSeconds=540";
  const stream = session.request({ ":path": path, ...head });
  stream.on("error", (error) => errors.push(`watch: ${error.message}`));
  let rest = "";
  let last: number | undefined;
  stream.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString("latin1")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const version = Number(/"resourceVersion":"(\d+)"/.exec(line)?.[1]);
      if (last !== undefined && version !== last + 1) errors.push(`watch: ${version} after ${last}`);
      last = version;
      done.event++;
    }
  });
  const early = once(stream, "close").then(() => true);
  if (await Promise.race([early, pause(stopping, randomInt(20_000, 60_000))])) {
    if (!isOver()) errors.push("watch: ended by the proxy");
    await sleep(1_000); // as a reflector backs off
    return;
  }
  stream.close(constants.NGHTTP2_CANCEL);
  done.watch++;
}
