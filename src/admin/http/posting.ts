/**
 * Protects the API's operations from foreign web pages (A56). The API is on loopback, which every browser of this machine
 * can reach. A foreign page can make a browser send a form, but not these requests: the header of an operator's name makes
 * the browser send a CORS preflight, which is never allowed here. A foreign Origin is refused explicitly; a foreign Host
 * was refused before.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isRecord, parseJson } from "../../base/json.ts";
import type { Journal } from "../../events/journal.ts";
import { adminLimits } from "./limits.ts";
import { failed, type Post, type Reply } from "./reply.ts";

/** The operator's name, as the client gives it: "alice (watchkeeper CLI)". */
const operatorHeader = "x-watchkeeper-operator";

type Posting = {
  readonly path: string;
  readonly journal: Journal;
  /** The user authenticated by a cluster; undefined: the API has no authorization. */
  readonly username: string | undefined;
};

/** Runs the operation and returns the response. Refusals because of origin go to the journal. */
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
  return post({ by, body });
}

/** Allowed values of Sec-Fetch-Site: those of the admin page and of a typed URL; only browsers send the field. */
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

/** Not verified: any client that reaches loopback can send any name. */
function nameIn(headers: IncomingHttpHeaders): string {
  const name = headers[operatorHeader];
  return typeof name === "string" ? name.slice(0, adminLimits.operatorChars).trim() : "";
}

/** Returns undefined if the body is too long; the rest is not read. */
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
