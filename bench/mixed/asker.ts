/** Sends short requests, and checks status and length of each response. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { smallPath } from "../peer.ts";
import { sleep } from "../processes.ts";
import { type Ground, head, open } from "./ground.ts";

async function answerOf(stream: ClientHttp2Stream): Promise<{ status: number; bytes: number }> {
  let status = 0;
  let bytes = 0;
  stream.on("response", (fields) => {
    status = fields[":status"] ?? 0;
  });
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(stream, "close");
  if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) status = -stream.rstCode;
  return { status, bytes };
}

type Turn = (session: ClientHttp2Session) => Promise<void>;

/** Runs one client that sends `perSecond` requests a second. It opens a new session every 10 to 30 s. */
export async function asker(ground: Ground, perSecond: number, turn: Turn): Promise<void> {
  while (!ground.isOver()) {
    const session = open(ground);
    const endsAt = performance.now() + randomInt(10_000, 30_000);
    while (performance.now() < endsAt && !ground.isOver()) {
      const began = performance.now();
      await turn(session);
      await sleep(Math.max(1, 1_000 / perSecond - (performance.now() - began)));
    }
    session.close();
  }
}

export function get(ground: Ground): Turn {
  return (session) => ask(ground, session, "get", { ":path": smallPath });
}

export function list(ground: Ground): Turn {
  return (session) => ask(ground, session, "list", { ":path": "/api/v1/pods" });
}

export function post(ground: Ground): Turn {
  const path = "/api/v1/namespaces/default/configmaps";
  return (session) => ask(ground, session, "upload", { ":path": path, ":method": "POST" });
}

/** The sizes, in bytes, of the response bodies that the backend (bench/go) sends. */
const wanted = { get: 2_048, list: Math.floor((20 << 20) / 15) * 15, upload: 2_048 };

async function ask(
  ground: Ground,
  session: ClientHttp2Session,
  kind: keyof typeof wanted,
  fields: Record<string, string>,
): Promise<void> {
  const stream = session.request({ ...fields, ...head });
  if (kind === "upload") stream.end(ground.upload);
  stream.on("error", () => undefined); // answerOf reads the code
  const { status, bytes } = await answerOf(stream);
  if (status === 200 && bytes === wanted[kind]) ground.done[kind]++;
  else if (!ground.isOver()) ground.errors.push(`${kind}: ${status}, ${bytes} of ${wanted[kind]} bytes`);
}
