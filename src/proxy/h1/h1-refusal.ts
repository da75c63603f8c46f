/**
 * HTTP/1.1 responses that are written to the socket directly, as its last bytes: to malformed requests, to plain HTTP
 * on a TLS port, and to requests that the proxy cuts. The bodies are Kubernetes `Status` objects, because kubectl then
 * prints the message instead of "unknown".
 */
import { statusJson } from "../../kube/status.ts";

/** The reason phrase (RFC 9110 §15) and the reason of the apiserver's `Status`, for each status code. */
const reasons = {
  400: ["Bad Request", "BadRequest"],
  405: ["Method Not Allowed", "MethodNotAllowed"],
  413: ["Content Too Large", "RequestEntityTooLarge"],
  431: ["Request Header Fields Too Large", "RequestHeaderFieldsTooLarge"],
  504: ["Gateway Timeout", "Timeout"],
} as const;
export type RefusalCode = keyof typeof reasons;

/** Returns a response after which the connection ends. `message` must not quote field values, which may be secret. */
export function refusal(code: RefusalCode, message: string): Buffer {
  const [phrase, reason] = reasons[code];
  // The message begins with the proxy's name, as in local-reply.ts, so that no reader blames an apiserver.
  const body = statusJson({ message: `watchkeeper: ${message}`, reason, code });
  const head = [
    `HTTP/1.1 ${code} ${phrase}`,
    "content-type: application/json",
    "cache-control: no-cache, private",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/** Returns the response to plain HTTP on a TLS port. Go's server names the mistake in the same words. */
export function plainHttpOnTls(): Buffer {
  return refusal(400, "Client sent an HTTP request to an HTTPS port: use https:// in the server's address");
}
