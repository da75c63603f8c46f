/** Faults in src/h2: missing limits, missing checks and off-by-one errors. */
import { type Defect, defect } from "../defect.ts";

export const wire: readonly Defect[] = [
  defect(
    "each tiny frame of an upload goes on as a frame",
    {
      file: "h2/frame/writer.ts",
      find: "if (id === this.#dataId && this.#joins(bytes, start, end, endStream)) return;",
      replace: "void this.#joins;",
    },
    [
      "proxy/request/relay",
      "an upload in frames of one byte reaches the upstream connection in a tenth of them",
    ],
  ),
  defect(
    "tiny frames of two uploads by turns go on one by one",
    {
      file: "h2/session/stream.ts",
      find: "this.#dataTurn === outflow.turn && !writer.endsWith(this.id)",
      replace: "this.#dataTurn < -1 && !writer.endsWith(this.id) && outflow.turn < 0",
    },
    [
      "proxy/request/relay",
      "an upload in frames of one byte reaches the upstream connection in a tenth of them",
    ],
  ),
  defect(
    "DATA joins a frame that ends its stream",
    { file: "h2/frame/writer.ts", find: "if (!endStream) this.#dataId = id;", replace: "this.#dataId = id;" },
    ["h2/frame/writer", "random DATA forwarded"],
  ),
  defect(
    "an end that joins is forgotten",
    {
      file: "h2/frame/writer.ts",
      find: "const flags = endStream ? flag.END_STREAM : 0;",
      replace: "const flags = 0;",
    },
    [
      "proxy/request/relay",
      "an upload in frames of one byte reaches the upstream connection in a tenth of them",
    ],
  ),
  defect(
    "a token is read in quadratic time",
    {
      file: "upstream/identity/credential-expiry.ts",
      find: "const payload = payloadIn(value);",
      replace:
        'const payload = /^bearer +[^.]+\\.([^.]+)\\.[^.]+$/i.exec(value)?.[1] ?? "";\n  void payloadIn;',
    },
    ["upstream/identity/credential-expiry", "64 KiB that look like a token take less than 5 ms"],
  ),
  defect(
    "answers pay for control frames without end",
    { file: "h2/session/floods.ts", find: "this.#earned -= frames;", replace: "" },
    ["h2/session/floods", "a thousand for no more"],
  ),
  defect(
    "answers pay for resets",
    {
      file: "h2/session/floods.ts",
      find: 'if (kind === "reset" || kind === "connection") return false;',
      replace: "",
    },
    ["h2/session/floods", "no answer pays for a reset"],
  ),
  defect(
    "no request pays for its client's control frames",
    { file: "proxy/request/exchange.ts", find: "this.context.client.answered();", replace: "" },
    ["proxy/downstream/downstream", "a PRIORITY and a WINDOW_UPDATE with each of 3,000 requests"],
  ),
  defect(
    "a refusal by the proxy pays for control frames",
    {
      file: "proxy/request/exchange.ts",
      find: "this.#status = sendLocalReply(this.down, this.context.method, failure);",
      replace:
        "this.context.client.answered();\n    this.#status = sendLocalReply(this.down, this.context.method, failure);",
    },
    ["proxy/downstream/downstream", "requests that are answered here, or refused, pay for nothing"],
  ),
  defect(
    "a rate that was slowed down stays slow",
    {
      file: "base/token-bucket.ts",
      find: "Math.min(this.#fullPerMs, this.#perMs + step)",
      replace: "this.#perMs",
    },
    ["base/token-bucket", "which comes back in seconds"],
  ),
  defect(
    "a budget has no end",
    {
      file: "base/token-bucket.ts",
      find: "if (this.#tokens + bonus >= 0) return true;",
      replace: "return true;",
    },
    ["h2/session/resets", "requests that are cancelled before their answer end the session"],
  ),
  defect(
    "an integer goes on for ever",
    {
      file: "h2/hpack/hpack-decoder.ts",
      find: 'if (this.#at - first === maxContinuationBytes) throw compressionError("Integer too long");',
      replace: "",
    },
    ["h2/hpack/hpack-decoder", "an integer is read with needless bytes up to its bound"],
  ),
  defect(
    "a block may update its table for ever",
    {
      file: "h2/hpack/hpack-decoder.ts",
      find: "if (++this.#sizeUpdates > h2Limits.hpackSizeUpdates)",
      replace: "if (++this.#sizeUpdates > 1e9)",
    },
    ["h2/hpack/hpack-decoder", "a table size update stands at the start"],
  ),
  defect(
    "the table grows beyond what was advertised",
    {
      file: "h2/hpack/hpack-decoder.ts",
      find: "if (tableBytes > this.#advertisedBytes)",
      replace: "if (tableBytes < 0)",
    },
    ["h2/hpack/hpack-decoder", "a table size update stands at the start"],
  ),
  defect(
    "a field may be as long as a list",
    { file: "h2/hpack/hpack-decoder.ts", find: " || decoded > limits.fieldBytes", replace: "" },
    ["h2/hpack/hpack-decoder", "one string of 64 KiB is read"],
  ),
  defect(
    "references are free",
    {
      file: "h2/hpack/hpack-decoder.ts",
      find: "    const field = this.#entry(this.#readInteger(bytes, end, 0x7f));\n    this.#count(field.size);",
      replace: "    const field = this.#entry(this.#readInteger(bytes, end, 0x7f));\n    this.#count(0);",
    },
    ["h2/hpack/hpack-decoder", "a bomb of one-byte references is cut at the limit"],
  ),
  defect(
    "the Huffman code may end as it likes",
    {
      file: "h2/hpack/hpack-decoder.ts",
      find: 'if (length < 0) throw compressionError("Invalid Huffman code");',
      replace: "",
    },
    ["h2/hpack/hpack-decoder", "Huffman code that is not one is refused"],
  ),
  defect(
    "CONTINUATION has no end",
    {
      file: "h2/frame/reader.ts",
      find: "this.#parts.length - 1 > h2Limits.continuationFrames || ",
      replace: "",
    },
    ["h2/frame/header-block", "eight CONTINUATION frames pass, the ninth"],
  ),
  defect(
    "a block has no bound",
    { file: "h2/frame/reader.ts", find: " || this.#bytes > h2Limits.headerBlockBytes", replace: "" },
    ["h2/frame/header-block", "144 KiB pass"],
  ),
  defect(
    "frames may come inside a header block",
    {
      file: "h2/frame/reader.ts",
      find: "if (this.#block.id !== 0 && (type !== frameType.CONTINUATION || id !== this.#block.id)) {",
      replace: "if (this.#block.id < 0) {",
    },
    ["h2/frame/reader", "unknown frame inside a header block"],
  ),
  defect(
    "padding may be longer than its frame",
    {
      file: "h2/frame/reader.ts",
      find: 'if (to < start + 1) throw protocolError("Padding longer than its frame");',
      replace: "",
    },
    ["h2/frame/reader", "adding"],
  ),
  defect(
    "a client opens even streams",
    {
      file: "h2/session/streams.ts",
      find: 'if (id % 2 === 0) throw sessionError(errorCode.PROTOCOL_ERROR, "HEADERS on an even stream");',
      replace: "",
    },
    ["h2/session/streams", "even"],
  ),
  defect(
    "resets cost nothing",
    {
      file: "h2/session/streams.ts",
      find: 'if (this.#isServer && !stream.hasAnswered) this.#floods.charge("reset");',
      replace: "",
    },
    ["h2/session/resets", "requests that are cancelled before their answer end the session"],
  ),
  defect(
    "provoking resets costs nothing",
    {
      file: "h2/session/streams.ts",
      find: 'this.#owner.refused?.(error.message);\n    this.#floods.charge("reset");',
      replace: "this.#owner.refused?.(error.message);",
    },
    ["h2/session/resets", "provoking resets costs the same budget"],
  ),
  defect(
    "a backend sends for ever what no client waits for",
    { file: "h2/session/streams.ts", find: "return this.#left >= 0;", replace: "return true;" },
    ["h2/session/stray-bytes", "one more is not"],
  ),
  defect(
    "streams are refused for ever",
    {
      file: "h2/session/streams.ts",
      find: "if (this.#inRow > h2Limits.refusedStreams)",
      replace: "if (this.#inRow > 1e9)",
    },
    ["h2/session/refusals", "a hundred in a row end the session"],
  ),
  defect(
    "settings have no ranges",
    {
      file: "h2/session/settings.ts",
      find: "if (value < least || value > most)",
      replace: "if (value < least)",
    },
    ["h2/session/settings", "ends the session with the code"],
  ),
  defect(
    "a window widens beyond its largest",
    { file: "h2/session/window.ts", find: "if (wider > largestWindow)", replace: "if (wider > 2 ** 40)" },
    ["h2/session/window", "a window widens to 2^31 - 1"],
  ),
  defect(
    "interim heads have no end",
    {
      file: "h2/session/stream.ts",
      find: 'if (this.#interimHeads > limits.interimHeads) throw malformed("too many interim heads");',
      replace: "",
    },
    ["h2/session/message", "sixteen interim heads pass"],
  ),
  defect(
    "a body is longer than it said",
    {
      file: "h2/session/stream.ts",
      find: 'if (this.#expected < 0) throw malformed("body longer than its content-length");',
      replace: "",
    },
    ["h2/session/message", "a body is held to its content-length"],
  ),
  defect(
    "a body is shorter than it said",
    {
      file: "h2/session/stream.ts",
      find: 'if (end && this.#expected > 0) throw malformed("body shorter than its content-length");',
      replace: "",
    },
    ["h2/session/message", "a body is held to its content-length"],
  ),
  defect(
    "trailers carry an identity",
    { file: "h2/core/fields.ts", find: "role.credential, role.identity],", replace: "role.credential]," },
    ["h2/core/fields", "trailers hold no pseudo-field"],
  ),
  defect(
    "pseudo-fields come where they like",
    {
      file: "h2/core/fields.ts",
      find: 'if (rule.isPseudo && hasRegular) return "pseudo-field after a regular field";',
      replace: "",
    },
    ["h2/core/fields", "pseudo-fields come first"],
  ),
  defect(
    "host says something else",
    {
      file: "h2/core/fields.ts",
      find: 'return host.toLowerCase() === requested.toLowerCase() ? undefined : "host differs from :authority";',
      replace: "return undefined;",
    },
    ["h2/core/fields", "host equals :authority"],
  ),
  defect(
    "a value holds control characters",
    {
      file: "h2/core/field.ts",
      find: 'return goodValue.test(value) ? undefined : "field value has a control character";',
      replace: "return undefined;",
    },
    ["h2/core/field", "a bad name or value is a fault"],
  ),
  defect(
    "blanks around a value are forwarded",
    { file: "h2/core/fields.ts", find: "\n  trim(fields);", replace: "" },
    ["h2/core/fields", "blanks around the value of a regular field are removed"],
  ),
  defect(
    "a certificate's name with blanks around it identifies another user",
    { file: "upstream/identity/asserted-identity.ts", find: " && !hasOuterBlanks", replace: "" },
    ["upstream/identity/asserted-identity", "a name that no header field can carry is refused"],
  ),
  defect(
    "a malformed request is not counted",
    { file: "h2/session/streams.ts", find: "    this.#owner.refused?.(error.message);\n", replace: "" },
    ["proxy/downstream/downstream", "a malformed request is journaled"],
  ),
  defect(
    "identities enter the table",
    {
      file: "h2/core/field.ts",
      find: "return of === role.authorization || of === role.credential || of === role.identity;",
      replace: "return of === role.authorization || of === role.credential;",
    },
    ["h2/hpack/hpack-encoder", "credentials and identities are never indexed"],
  ),
  defect(
    "PINGs cost nothing",
    {
      file: "h2/session/session.ts",
      find: "    this.#chargeControl();\n    this.#writer.ping(",
      replace: "    this.#writer.ping(",
    },
    ["h2/session/session", "PING (A14)"],
  ),
  defect(
    "a client's PONGs cost nothing",
    {
      file: "h2/session/session.ts",
      find: 'if (this.#role === "server") this.#chargeControl();',
      replace: "",
    },
    ["h2/session/session", "a client's PONGs and GOAWAYs cost it"],
  ),
  defect(
    "half a frame waits for ever",
    { file: "h2/session/session.ts", find: "now - this.#midFrameSince > frameLimitMs", replace: "now < 0" },
    ["h2/session/session", "a frame that is begun and not finished"],
  ),
  defect(
    "the first SETTINGS need not come",
    {
      file: "h2/session/session.ts",
      find: "if (!this.isSettled && now > this.#settingsDueAt) {",
      replace: "if (now < 0) {",
    },
    ["h2/session/session", "without SETTINGS a session ends"],
  ),
  defect(
    "a socket is given all at once",
    {
      file: "h2/session/outflow.ts",
      find: "this.#unflushedBytes >= limits.socketBacklogBytes",
      replace: "this.#unflushedBytes < 0",
    },
    ["h2/session/flow-out", "what waits goes to the socket no faster"],
  ),
  defect(
    "what a closed stream owes is forgotten",
    { file: "h2/session/streams.ts", find: "    this.granted(stream.settle());\n", replace: "" },
    ["h2/session/flow-in", "bytes that were not granted are given back"],
  ),
  defect(
    "a received byte counts for no window",
    {
      file: "h2/session/window.ts",
      find: "    this.#open -= count;\n    return this.#open >= 0;",
      replace: "    return this.#open >= 0;",
    },
    ["h2/session/flow-in", "a body beyond its stream's window"],
  ),
  defect(
    "a malformed answer is relayed as a reset, after which a write is sent again",
    {
      file: "proxy/request/local-reply.ts",
      find: "  if (fault !== undefined) return",
      replace: '  if (fault !== undefined && backend === "") return',
    },
    ["proxy/request/relay", "an answer that breaks the rules before its head went on is 502"],
  ),
  defect(
    "the default host's name is served behind another cluster's",
    {
      file: "proxy/tls/sni-hosts.ts",
      find: "!(hasAskedByName && this.#isOfDefault(name, host))",
      replace: "true",
    },
    ["proxy/tls/sni-hosts", "421 for the default host's name"],
  ),
  defect(
    "kubectl --tls-server-name is refused",
    { file: "proxy/tls/sni-hosts.ts", find: "!(hasAskedByName && this", replace: "!(this" },
    ["proxy/tls/sni-hosts", "421 for the default host's name"],
  ),
  defect(
    "a timer of a month runs at once",
    { file: "base/clock.ts", find: "if (ms > longestTimerMs) return afterLong(ms, run);", replace: "" },
    ["base/clock", "2^31 - 1 ms is waited for whole"],
  ),
  defect(
    "directories are made as Node makes them, which never ends in /proc",
    {
      file: "ops/cli/deploy/new-files.ts",
      find: "      makeDirectory(dirname(path));",
      replace: "      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });",
    },
    ["ops/cli/deploy/new-files", "a directory that cannot be is an error"],
  ),
  defect(
    "a field that was evicted from the table of HPACK is sent as its entry",
    { file: "h2/hpack/hpack-encoder.ts", find: "known >= this.#table.oldest", replace: "known >= 0" },
    ["h2/hpack/hpack-encoder", "evicted since it was last sent"],
  ),
  defect(
    "a request counts as checked if its first field is that of the one before",
    {
      file: "h2/core/fields.ts",
      find: "for (let at = 0; at < length; at += 1) if",
      replace: "for (let at = 0; at < 1; at += 1) if",
    },
    ["h2/core/fields", "whose other fields differ from the one before"],
  ),
  defect(
    "short output is lent to a client that does not read",
    {
      file: "upstream/net/tls-writer.ts",
      find: "isLent && isShort(buffer) ?",
      replace: "isLent && buffer.length < 1 ?",
    },
    ["upstream/net/tls-writer", "may be reused as soon as"],
  ),
  defect(
    "the end overtakes the bytes that wait",
    {
      file: "upstream/net/socket.ts",
      find: "if (this.#writer === undefined || this.#writer.waitingBytes === 0) this.#socket.end();",
      replace: "this.#socket.end();",
    },
    ["upstream/net/tls-writer", "the end comes after all bytes"],
  ),
];
