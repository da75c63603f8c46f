/** Faults at the edges: listening sockets, HTTP/1.1 heads, Upgrades, and the size and form of requests. */
import { type Defect, defect } from "../defect.ts";

export const edges: readonly Defect[] = [
  defect(
    "a request below the path of the backends' URLs is not recognised",
    {
      file: "proxy/request/handler.ts",
      find: "withoutPrefix(received, parts.pathPrefix())",
      replace: "received",
    },
    ["flows/path-prefix", "moves, and is resumed below the same path"],
  ),
  defect(
    "a path that begins like the backends' path counts as one below it",
    {
      file: "upstream/context/path-prefix.ts",
      find: '!["", "/", "?"].includes(next)',
      replace: "next === undefined",
    },
    ["flows/path-prefix", "a path beside the prefix is taken below it"],
  ),
  defect(
    "an Upgrade below the path of the backends' URLs goes to the root",
    { file: "proxy/tunnel/upgrade-handler.ts", find: "path: prefix + head.path", replace: "path: head.path" },
    ["flows/path-prefix", "an exec below the path reaches the backend"],
  ),
  defect(
    "a kernel without IPv6 has no address without a host",
    { file: "upstream/net/bind.ts", find: 'host === "::" && isWithoutIpv6(error)', replace: "port < 0" },
    ["upstream/net/bind", "is bound over IPv4"],
  ),
  defect(
    "a socket of IPv4 alone serves an address without a host",
    { file: "upstream/net/bind.ts", find: "isIpv4Only && (await lacksIpv6())", replace: "isIpv4Only" },
    ["upstream/net/bind", "is adopted for an address without a host only"],
  ),
  defect(
    "a refused Upgrade loses its reason phrase",
    { file: "proxy/h1/h1-head.ts", find: "`HTTP/1.1 ${status} ${phrase}`", replace: "`HTTP/1.1 ${status} `" },
    ["proxy/h1/h1-head", "and with the phrase that it came in"],
  ),
  defect(
    "an Upgrade field makes every request a tunnel",
    {
      file: "proxy/h1/h1-request.ts",
      find: 'if (raw.version !== "1.1" || (raw.method !== "GET" && raw.method !== "POST")) return false;',
      replace: 'if (raw.target !== "") return true;',
    },
    ["proxy/h1/h1-request", "an Upgrade that no apiserver serves is ignored"],
  ),
  defect(
    "exec with a body is a plain request",
    { file: "proxy/h1/h1-request.ts", find: "if (tunnels.has(", replace: "if (false && tunnels.has(" },
    ["proxy/h1/h1-request", "are never plain requests"],
  ),
  defect(
    "the reset that stops an upload is sent with the answer",
    {
      file: "h2/frame/writer.ts",
      find: "this.#touch();\n    this.#stopped ??= [];\n    this.#stopped.push(id);",
      replace: "this.reset(id, errorCode.NO_ERROR);",
    },
    ["h2/frame/writer", "is written one flush after the answer"],
  ),
  defect(
    "a head above the limit is a bad request",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: "excessOf(request.rawHeaders) === undefined ? 400 : 431",
      replace: "400",
    },
    ["attacks/h1", "A7: a field beyond its bound"],
  ),
  defect(
    "a half-closed client gets no answer",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: "(this.#isEndless || isCut)",
      replace: "(isCut || !isCut)",
    },
    ["proxy/downstream/h1", "closed its half still gets the answers"],
  ),
  defect(
    "a query of too many pairs is a watch",
    { file: "kube/request-info.ts", find: "return count > mostPairs;", replace: "return count < 0;" },
    ["attacks/advisories", "20,000 query parameters"],
  ),
  defect(
    "an HTTP client reads a response of any length",
    { file: "ops/http/http-client.ts", find: "bytes > mostBytes", replace: "bytes < 0" },
    ["ops/http/http-client", "a body over the limit is refused"],
  ),
  defect(
    "the environment turns off the verification of the servers that an HTTP client asks",
    {
      file: "ops/http/http-client.ts",
      find: "rejectUnauthorized: options.rejectUnauthorized !== false,",
      replace: 'rejectUnauthorized: process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0",',
    },
    ["ops/http/http-client", "whatever the environment says"],
  ),
  defect(
    "the socket of an HTTP client that gave up stays open",
    { file: "ops/http/http-client.ts", find: "    socket.destroy();\n", replace: "" },
    ["ops/http/http-client", "answers no handshake"],
  ),
  defect(
    "a token file with a line break is sent as a token",
    { file: "base/read-text.ts", find: "/^[\\x21-\\x7e]+$/.test(token)", replace: 'token !== ""' },
    ["ops/discovery/account-transport", "names its file, and shows no part of it"],
  ),
];
