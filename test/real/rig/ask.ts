/** The rig's own simple API client, for preparation and observation. The requests under test use other clients. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";

export type Server = {
  readonly url: string;
  readonly caFile: string;
  readonly token?: string;
  /** A client certificate. */
  readonly pair?: { readonly certFile: string; readonly keyFile: string };
};

export type Question = {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
};

export type Answer = { readonly status: number; readonly text: string };

/**
 * A new socket for each request, so that a request after a fault does not use a socket from before it. No TLS session
 * is resumed, because Node checks the name in a certificate only in a full handshake.
 */
const agent = new Agent({ keepAlive: false, maxCachedSessions: 0 });

export function ask(server: Server, question: Question, timeoutMs = 10_000): Promise<Answer> {
  const headers: Record<string, string> = { "content-type": question.contentType ?? "application/json" };
  if (server.token !== undefined) headers["authorization"] = `Bearer ${server.token}`;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { pair } = server;
  const own =
    pair === undefined ? {} : { cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) };
  const ca = readFileSync(server.caFile);
  const sent = request(
    new URL(question.path, server.url),
    { method: question.method ?? "GET", headers, ca, ...own, agent, timeout: timeoutMs },
    (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("error", reject);
      reply.on("end", () =>
        resolve({ status: reply.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    },
  );
  sent.on("error", reject);
  sent.on("timeout", () => sent.destroy(new Error(`No answer to ${question.path} within ${timeoutMs} ms`)));
  sent.end(question.body === undefined ? undefined : JSON.stringify(question.body));
  return promise;
}

/** Same as `ask`, but rejects unless the request succeeds. */
export async function order(server: Server, question: Question): Promise<string> {
  const { status, text } = await ask(server, question);
  if (status >= 300) throw new Error(`${question.method ?? "GET"} ${question.path} got ${status}: ${text}`);
  return text;
}

/** Returns the user that the server recognizes, or only the status if it rejects the request. */
export async function whoIs(server: Server): Promise<{ username: string; groups: string[] } | number> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const answer = await ask(server, { method: "POST", path, body }, 20_000);
  return answer.status === 201 ? JSON.parse(answer.text).status.userInfo : answer.status;
}
