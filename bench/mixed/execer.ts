/** Runs execs that pause between messages, and checks that each message is echoed whole. */
import { randomInt } from "node:crypto";
import { request } from "node:https";
import type { Duplex } from "node:stream";
import { sleep } from "../processes.ts";
import { type Ground, head, pause } from "./ground.ts";

/**
 * Starts an exec of `cat` with kubectl's SPDY upgrade. Returns undefined if the proxy answers with a status other than
 * 101.
 */
export async function dialExec({ port, ca }: Ground): Promise<Duplex | undefined> {
  const upgrade = request({
    port,
    ca,
    host: "127.0.0.1",
    servername: "localhost",
    agent: false,
    method: "POST",
    path: "/api/v1/namespaces/default/pods/p/exec?command=cat&stdin=true&stdout=true",
    headers: { ...head, connection: "Upgrade", upgrade: "SPDY/3.1", "content-length": "0" },
  });
  upgrade.end();
  return new Promise((resolve) => {
    upgrade.on("upgrade", (_, socket) => resolve(socket));
    upgrade.on("response", () => resolve(undefined));
    upgrade.on("error", () => resolve(undefined));
  });
}

/** Runs one exec after the other. Each pauses between its messages, and each message must be echoed whole. */
export async function execer(ground: Ground): Promise<void> {
  const { stopping, isOver, errors, done } = ground;
  while (!isOver()) {
    const socket = await dialExec(ground);
    if (socket === undefined) {
      errors.push("exec: no upgrade");
      await sleep(1_000);
      continue;
    }
    socket.on("error", (error) => errors.push(`exec: ${error.message}`));
    for (let word = 0; word < 5 && !isOver(); word++) {
      const sent = Buffer.alloc(randomInt(1, 50_000), `word ${word} `);
      if (!(await echoes(socket, sent))) errors.push("exec: the echo differs");
      await pause(stopping, randomInt(500, 3_000));
    }
    socket.destroy();
    done.exec++;
  }
}

async function echoes(socket: Duplex, sent: Buffer): Promise<boolean> {
  const heard: Buffer[] = [];
  let bytes = 0;
  const whole = new Promise<boolean>((resolve) => {
    const hear = (chunk: Buffer): void => {
      heard.push(chunk);
      bytes += chunk.length;
      if (bytes < sent.length) return;
      socket.off("data", hear);
      resolve(Buffer.concat(heard).equals(sent));
    };
    socket.on("data", hear);
    socket.once("close", () => resolve(false));
  });
  socket.write(sent);
  return whole;
}
