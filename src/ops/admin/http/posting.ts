/**
 * Runs operations, and rejects requests from foreign web pages (A56), because every browser on this machine can reach
 * the API on loopback. An operation needs a header with the operator's name. Before a foreign page can send this
 * header, the browser sends a CORS preflight, which the API never allows.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isRecord, parseJson } from "../../../base/json.ts";
import type { Journal } from "../../../events/journal.ts";
import { adminLimits } from "./limits.ts";
import { failed, type Post, type Reply } from "./reply.ts";

/** Header with the operator's name, which the client chooses, such as "alice (watchkeeper CLI)". */
const operatorHeader = "x-watchkeeper-operator";

type Posting = {
  readonly path: string;
  readonly journal: Journal;
  /** The authenticated user; undefined: the API has no authorization. */
  readonly username: string | undefined;
};

/**
 * Runs the operation and returns the response. Rejects and journals the request if it comes from a foreign page, has no
 * operator's name, or is not JSON.
 */
export async function replyToPost(
  request: IncomingMessage,
  post: Post,
  { path, journal, username }: Posting,
): Promise<Reply> {
  const { headers, socket } = request;
  const scheme = "encrypted" in socket ? "https" : "http";
  const refusal = refusalOf(headers, scheme);
  if (refusal !== undefined) {
    const [status, reason] = refusal;
    const by = socket.remoteAddress ?? "";
    journal.write({ kind: "operation.refused", operation: "post", target: path, by, reason });
    return failed(status, reason);
  }
  const text = await bodyOf(request);
  const body = text === undefined ? undefined : parseJson(text);
  if (text === undefined) return failed(413, `The body must not exceed ${adminLimits.apiBodyBytes} bytes`);
  if (!isRecord(body)) return failed(400, "The body must be a JSON object, for example {}");
  const by = `${username ?? nameIn(headers)} at ${socket.remoteAddress ?? "somewhere"}`;
  return post({ by, body, headers });
}

/** Allowed values of Sec-Fetch-Site: undefined for programs, "same-origin" for the admin page, "none" for a typed URL. */
const ownSites: readonly unknown[] = [undefined, "same-origin", "none"];

function refusalOf(
  headers: IncomingHttpHeaders,
  scheme: "http" | "https",
): readonly [status: number, reason: string] | undefined {
  const { origin, host = "" } = headers;
  if (origin !== undefined && origin !== `${scheme}://${host}`)
    return [403, `Pages of ${JSON.stringify(origin.slice(0, 100))} may not call operations`];
  if (!ownSites.includes(headers["sec-fetch-site"]))
    return [403, "Pages of another site may not call operations"];
  if (nameIn(headers) === "") return [403, `Missing ${operatorHeader}: the name of the operator`];
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") return [415, "The body must be application/json"];
  return undefined;
}

/** Returns the operator's name. It is not verified: without authorization, any client on loopback can send any name. */
function nameIn(headers: IncomingHttpHeaders): string {
  const name = headers[operatorHeader];
  return typeof name === "string" ? name.slice(0, adminLimits.operatorChars).trim() : "";
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes > adminLimits.apiBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
