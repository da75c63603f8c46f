/**
 * Generates requests that claim another identity. They use every header that the apiserver, or a server behind it,
 * could take for an identity, in every spelling that some parser might accept.
 */
import type { Random } from "./random.ts";

/**
 * The extra fields of one request. If every name is a valid field name (an RFC 9110 token), the request is also sent
 * over HTTP/2.
 */
export type Claim = {
  readonly fields: readonly (readonly [string, string])[];
  readonly trailers: readonly (readonly [string, string])[];
  /** Raw lines that are inserted into the HTTP/1.1 head. */
  readonly lines: readonly string[];
};

const users = ["admin", "system:admin", "kubernetes-admin", "system:apiserver"] as const;
const names = [
  "X-Remote-User",
  "X-Remote-Uid",
  "X-Remote-Group",
  "X-Remote-Extra-Scopes",
  "X-Remote-Extra-authentication.kubernetes.io%2Fcredential-id",
  "X-Remote-User-Name",
  "X-Forwarded-User",
  "Authorization",
] as const;

function valueOf(name: string, random: Random): string {
  if (name === "Authorization")
    return random.pick(["Bearer admin-token", "Basic YWRtaW46YWRtaW4=", "Bearer"]);
  if (/group/i.test(name)) return random.pick(["system:masters", "a, system:masters", "system:masters\t"]);
  return random.pick(users);
}

function spelled(name: string, random: Random): string {
  const spelling = random.pick([
    (text: string) => text,
    (text: string) => text.toLowerCase(),
    (text: string) => text.toUpperCase(),
    (text: string) => text.replaceAll("-", "_"),
    (text: string) => text.replace("-", "_"),
    (text: string) => text.replace(/-(?=[^-]*$)/, "_"),
    (text: string) =>
      text.replace(/./g, (char) => (random.chance(0.5) ? char.toUpperCase() : char.toLowerCase())),
  ]);
  return spelling(name);
}

function line(name: string, value: string, random: Random): string {
  const write = random.pick([
    () => `${name} : ${value}`,
    () => `${name}:\t${value}\t`,
    () => `${name}: \r\n ${value}`,
    () => `\t${name}: ${value}`,
    () => `${name}\0: ${value}`,
    () => `x-a: b\r${name}: ${value}`,
    () => `x-a: b\n${name}: ${value}`,
    () => `${name}\u00a0: ${value}`,
    () => `Connection: close, ${name}`,
    () => `Connection: ${name}\r\n${name}: ${value}`,
    () => `Keep-Alive: ${name}`,
    () => `Trailer: ${name}`,
    () => `Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n${name}: ${value}`,
  ]);
  return write();
}

/** Returns a random claim. */
export function claim(random: Random): Claim {
  const fields: [string, string][] = [];
  const trailers: [string, string][] = [];
  const lines: string[] = [];
  // This share makes sure that most requests reach the identity check. The other claims are mostly malformed, and
  // refused for that reason.
  const isWellFormed = random.chance(0.7);
  for (let left = 1 + random.below(4); left > 0; left -= 1) {
    const name = random.pick(names);
    const value = valueOf(name, random);
    const dice = random.below(10);
    if (isWellFormed || dice < 4) fields.push([spelled(name, random), value]);
    else if (dice < 7) trailers.push([spelled(name, random), value]);
    else lines.push(line(spelled(name, random), value, random));
  }
  return { fields, trailers, lines };
}

/** Returns the request as HTTP/1.1 text. If it has trailers, its body is chunked. */
export function claimingRequest(
  { fields, trailers, lines }: Claim,
  { path, host, body }: { readonly path: string; readonly host: string; readonly body: string },
): string {
  const own = fields.map(([name, value]) => `${name}: ${value}`);
  const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, "Content-Type: application/json", ...own, ...lines];
  if (trailers.length === 0)
    return [...head, `Content-Length: ${Buffer.byteLength(body)}`, "", body].join("\r\n");
  const last = trailers.map(([name, value]) => `${name}: ${value}`);
  const size = Buffer.byteLength(body).toString(16);
  return [...head, "Transfer-Encoding: chunked", "", size, body, "0", ...last, "", ""].join("\r\n");
}
