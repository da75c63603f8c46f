/** Faults in the admission of clients, and in the limits on what a new client may send. */
import { type Defect, defect } from "../defect.ts";

export const admission: readonly Defect[] = [
  defect(
    "/readyz knows nothing of clients that are refused",
    { file: "ops/admin/server/probes.ts", find: 'ok: refusing === ""', replace: "ok: true" },
    ["ops/admin/server/probes", "lets clients in"],
  ),
  defect(
    "/readyz says at once again that clients are let in",
    { file: "proxy/downstream/intake.ts", find: ">= intakeCalmMs", replace: ">= 0" },
    ["proxy/downstream/intake", "until there is room to spare and none was refused for ten seconds"],
  ),
  defect(
    "/readyz says with one place free that clients are let in",
    {
      file: "proxy/downstream/intake.ts",
      find: "isCalm && this.#count < most * intakeEasy",
      replace: "isCalm",
    },
    ["proxy/downstream/intake", "until there is room to spare and none was refused for ten seconds"],
  ),
  defect(
    "a bearer that was accepted goes on holding its place",
    {
      file: "proxy/limits/request-gate.ts",
      find: "if (this.#entry !== undefined) this.#admitted(",
      replace: "if (this.#entry !== undefined && isAccepted === false) this.#admitted(",
    },
    ["proxy/admission/admission", "hold up no newcomer"],
  ),
  defect(
    "all first requests of a new bearer are sent at once",
    {
      file: "proxy/admission/admission.ts",
      find: "bearer !== undefined && bearer.firsts >= admissionLimits.unprovenPerBearer",
      replace: "bearer !== undefined && bearer.firsts < 0",
    },
    ["proxy/admission/admission", "the others wait for its first answer"],
  ),
  defect(
    "a GOAWAY counts as an attempt",
    {
      file: "proxy/request/exchange.ts",
      find: "if (isSentAway && attempts.isSpent && ",
      replace: "if (isSentAway && !isSentAway && ",
    },
    ["proxy/admission/admission", "is asked until it is answered"],
  ),
  defect(
    "tokens end on the connections of the proven",
    {
      file: "upstream/identity/trust.ts",
      find: "return Math.min(provenMs, Math.max(endedBearerMs, leftMs));",
      replace: "return provenMs;",
    },
    ["upstream/identity/trust", "a JWT is proven until its own expiry"],
  ),
  defect(
    "a stall of the proxy counts against requests that wait for an upstream connection",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "this.#attend(shard, this.#options.stallAwareClock.now());",
      replace: "this.#attend(shard, now);",
    },
    ["upstream/pool/shard", "a stall of the proxy refuses no request"],
  ),
  defect(
    "a stall of the proxy counts against pending requests",
    {
      file: "proxy/cluster/data-path.ts",
      find: "new PendingQueue(stallAwareClock)",
      replace: "new PendingQueue(clock)",
    },
    ["proxy/request/pending-queue", "released in vain after it"],
  ),
  defect(
    "a stall of the proxy counts against a watch that lost its backend",
    {
      file: "proxy/cluster/data-path.ts",
      find: "new StallAwareClock(clock)",
      replace: "Object.assign(new StallAwareClock(clock), clock)",
    },
    ["flows/watching-patience", "a stall of the proxy is not counted"],
  ),
  defect(
    "one address may have all places",
    {
      file: "proxy/admission/admission.ts",
      find: " || source.open >= admissionLimits.unprovenPerSource",
      replace: "",
    },
    ["proxy/admission/admission", "one address has a tenth"],
  ),
  defect(
    "one address may fill all of the room in which the unproven wait",
    {
      file: "proxy/admission/admission.ts",
      find: "return waiting <= free * admissionLimits.unprovenWaitingShare;",
      replace: "return free > 0;",
    },
    ["proxy/admission/admission", "other addresses find room"],
  ),
  defect(
    "addresses whose requests are answered 401 fill all of the room in which the unproven wait",
    {
      file: "proxy/admission/admission.ts",
      find: "free > admissionLimits.unprovenWaiting / 2",
      replace: "free > 0",
    },
    ["proxy/admission/admission", "from however many addresses"],
  ),
  defect(
    "further requests of one bearer take the places of other bearers",
    {
      file: "proxy/admission/admission.ts",
      find: 'if (entry.state === "held") this.#queue(entry, entry.source.later);',
      replace: 'if (entry.state === "held") this.#queue(entry, entry.source.queue);',
    },
    ["proxy/admission/admission", "come before further ones of any"],
  ),
  defect(
    "newcomers share connections with a flood of 401s",
    {
      file: "proxy/request/exchange-request.ts",
      find: "credential === undefined || admission.isRejected(client.address)",
      replace: "credential === undefined && admission.isRejected(client.address)",
    },
    ["proxy/admission/admission", "send no newcomer of another address away"],
  ),
  defect(
    "the wait for a place counts as time in which a request was sent away",
    {
      file: "proxy/request/exchange.ts",
      find: "Math.max(context.at, this.#gate?.admittedAt ?? 0)",
      replace: "context.at",
    },
    ["proxy/admission/admission", "is none of the time"],
  ),
  defect(
    "a limit hits the renewals of leases",
    { file: "proxy/limits/limit.ts", find: "return !isExempt(info);", replace: "return true;" },
    ["proxy/limits/limit", "leases and reviews pass"],
  ),
  defect(
    "a limit of all agents passes for one of some requests",
    { file: "ops/config/limit.ts", find: ' || names.includes("*")', replace: "" },
    ["proxy/limits/request-limits", "needs all: true"],
  ),
  defect(
    "a limit locks out the operator who has set it",
    {
      file: "proxy/limits/limit.ts",
      find: "user === operatorIn(origin.by)",
      replace: "false",
    },
    ["proxy/limits/limit", "the operator who has set a limit"],
  ),
  defect(
    "an invented token uses up the limit of a user",
    {
      file: "proxy/request/handler.ts",
      find: 'return asserted !== undefined || trust.classOf(credential) === "proven";',
      replace: 'return asserted !== undefined || trust.classOf(credential) !== "private";',
    },
    ["proxy/limits/request-limits", "only requests whose token a backend has accepted"],
  ),
  defect(
    "a request that leaves its turn keeps its place at the shield",
    { file: "proxy/limits/request-gate.ts", find: "this.#parts.shields.leave(this.#place)", replace: "{}" },
    ["proxy/limits/shield", "gets a few lists at once"],
  ),
  defect(
    "the queue of a shield is first come, first served",
    {
      file: "proxy/admission/fair-queue.ts",
      find: "if (group.waiting.size > 0) this.#turns.add(group);",
      replace: "if (group.waiting.size > 0) return first;",
    },
    ["proxy/admission/fair-queue", "users take turns"],
  ),
  defect(
    "a user with many waiting requests keeps its turn",
    {
      file: "proxy/admission/fair-queue.ts",
      find: "      this.#turns.delete(group);\n      this.#resize",
      replace: "      if (group.waiting.size === 1) this.#turns.delete(group);\n      this.#resize",
    },
    ["proxy/limits/shield", "no user with one request starves"],
  ),
  defect(
    "a slow backend gets more clients again while it is still nearly twice as slow",
    { file: "proxy/load/limits.ts", find: "lowPressure: 1.25", replace: "lowPressure: 2" },
    ["proxy/balance/steady", "the moves come to rest"],
  ),
  defect(
    "a refused certificate is not tried again",
    {
      file: "proxy/tls/reloading-file.ts",
      find: "() => void this.reload());\n    return failure;",
      replace: "() => {});\n    return failure;",
    },
    ["proxy/tls/certificates", "only its date keeps out is taken when the date has come"],
  ),
  defect(
    "a wildcard stands for no label at all",
    { file: "upstream/net/client-hello.ts", find: "name.replace(/^[^.]+/", replace: "name.replace(/^[^.]*/" },
    ["proxy/tunnel/passthrough-router", "a wildcard is one label, and never none"],
  ),
  defect(
    "401s of an address are never forgiven",
    {
      file: "proxy/admission/admission.ts",
      find: "* admissionLimits.rejectionsForgivenPerSecond) / 1000",
      replace: "* 0) / 1000",
    },
    ["proxy/admission/admission", "forgiven after a minute"],
  ),
  defect(
    "bearers that are accepted excuse no 401",
    {
      file: "proxy/admission/admission.ts",
      find: "this.#now(known) - 1;",
      replace: "this.#now(known);",
    },
    ["proxy/admission/admission", "among many good ones"],
  ),
  defect(
    "those that are answered 401 spend the dials of newcomers",
    {
      file: "upstream/pool/dial-backoff.ts",
      find: '(owner === "" ? this.#unproven : this.#rejected)',
      replace: '(owner !== "" ? this.#unproven : this.#unproven)',
    },
    ["upstream/pool/dial-backoff", "so do those of them that are rejected"],
  ),
  defect(
    "the unproven are not bounded in all",
    {
      file: "proxy/admission/admission.ts",
      find: "if (this.#open >= admissionLimits.unprovenRequests) return;",
      replace: "",
    },
    ["proxy/admission/admission", "one address has a tenth"],
  ),
  defect(
    "all handshakes are computed at once",
    {
      file: "proxy/downstream/handshake-queue.ts",
      find: "while (this.#begun < handshakesPerTurn && this.size > 0)",
      replace: "while (this.size > 0)",
    },
    ["proxy/downstream/handshake-queue", "a few begin at once"],
  ),
  defect(
    "a flood is served first",
    {
      file: "proxy/admission/fair-queue.ts",
      find: "      this.#turns.delete(group);\n      this.#resize",
      replace: "      if (group.waiting.size === 1) this.#turns.delete(group);\n      this.#resize",
    },
    ["proxy/downstream/handshake-queue", "sources take turns"],
  ),
  defect(
    "watches end first",
    {
      file: "proxy/overload/load-shedding.ts",
      find: '["plain", "long-running", "watch"]',
      replace: '["watch", "long-running", "plain"]',
    },
    ["proxy/overload/load-shedding", "watches only when nothing else is left"],
  ),
  defect(
    "the door opens and shuts at one mark",
    {
      file: "proxy/overload/load-shedding.ts",
      find: ' || (before !== "normal" && share >= heapLimits.heapEasy)',
      replace: "",
    },
    ["proxy/overload/load-shedding", "it must ease"],
  ),
  defect(
    "a full heap is not looked at again after the clients that filled it have gone",
    { file: "proxy/overload/load-shedding.ts", find: "    this.#parts.collect();\n", replace: "" },
    ["proxy/overload/load-shedding", "is looked at again"],
  ),
  defect(
    "pages go back at every look",
    {
      file: "proxy/overload/load-shedding.ts",
      find: " && now - this.#releasedAt >= heapLimits.heapPagesMs",
      replace: "",
    },
    ["proxy/overload/load-shedding", "once a minute"],
  ),
  defect(
    "one source has all sockets",
    { file: "proxy/admission/sources.ts", find: "if (count >= this.#most) return false;", replace: "" },
    ["proxy/admission/sources", "an address has its number"],
  ),
  defect(
    "a load balancer that hides its clients has as few connections as one client",
    {
      file: "proxy/downstream/listen.ts",
      find: "if (!this.#isBalancer(socket, address)) {",
      replace: "{",
    },
    ["proxy/downstream/listen", "that hides its clients"],
  ),
  defect(
    "a client of a trusted load balancer has any number of connections if its own address is trusted",
    {
      file: "proxy/downstream/listen.ts",
      find: ' && source === withoutMapping(socket.remoteAddress ?? "")',
      replace: "",
    },
    ["proxy/downstream/listen", "clients that a PROXY header names"],
  ),
  defect(
    "the alert about refused clients looks at the address with the fewest connections",
    {
      file: "proxy/admission/sources.ts",
      find: "most = Math.max(most, count)",
      replace: "most = Math.min(most || count, count)",
    },
    ["proxy/admission/sources", "the address with the most sockets is known"],
  ),
  defect(
    "half hellos have no bound",
    {
      file: "upstream/net/peek.ts",
      find: "if (waitingBytes > peekedBytes) socket.destroy();",
      replace: "",
    },
    ["upstream/net/peek", "first bytes without end are bounded over all sockets"],
  ),
  defect(
    "an idle session stays",
    {
      file: "proxy/downstream/downstream.ts",
      find: "else if (now - this.idleSince > limits.idleSessionMs) this.drain();",
      replace: "",
    },
    ["proxy/downstream/downstream", "a session without a stream is sent away"],
  ),
  defect(
    "a chunk's line has no end",
    {
      file: "proxy/h1/h1-body.ts",
      find: 'if (this.#line.length > h1LineBytes) return "chunk_line_too_long";',
      replace: "",
    },
    ["proxy/h1/h1-body", "neither a line nor all trailers together may grow without end"],
  ),
  defect(
    "a body is framed twice",
    {
      file: "proxy/h1/h1-head.ts",
      find: "if (isBodiless || head.contentLength >= 0) return undefined;",
      replace: "if (isBodiless) return undefined;",
    },
    ["proxy/h1/h1-head", "what two parsers may read in two ways is refused"],
  ),
  defect(
    "a PROXY header is as long as it says",
    {
      file: "upstream/net/proxy-protocol.ts",
      find: "if (length > proxyHeaderBytes) return malformed(`it has ${length} bytes`);",
      replace: "",
    },
    ["upstream/net/proxy-protocol", "one that is too long is refused before it has come"],
  ),
  defect(
    "a session is resumed at whichever host",
    {
      file: "proxy/tls/sni-hosts.ts",
      find: "const wholeOnly = hosts.length > 0 || own.clientCaFile !== undefined;",
      replace: "const wholeOnly = own.clientCaFile !== undefined;",
    },
    ["proxy/tls/sni-hosts", "a session is resumed at no host of several"],
  ),
  defect(
    "a name keeps the 64 KiB around it",
    { file: "base/detach.ts", find: "return Buffer.from(text).toString();", replace: "return text;" },
    ["base/detach", "a text of its own does not"],
  ),
  defect(
    "forwarders make a field as long as they like",
    {
      file: "upstream/context/upstream-fields.ts",
      find: 'forwardedFor !== "" && forwardedFor.length + value.length <= limits.fieldBytes',
      replace: 'forwardedFor !== ""',
    },
    ["upstream/context/upstream-fields", "what forwarders have made longer than a field may be"],
  ),
  defect(
    "plain HTTP on the TLS port stays",
    {
      file: "proxy/downstream/listen.ts",
      find: "socket.end(plainHttpOnTls());\n    closeAfterFlush(socket, this.#parts.clock);",
      replace: "socket.end(plainHttpOnTls());",
    },
    ["attacks/whole/idle", "plain HTTP to the TLS port and stays"],
  ),
  defect(
    "idle clients of HTTP/1.1 are never sent away",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: "return !this.#isBusy && this.#hasRequested && !this.#isDraining && !this.#isRefused;",
      replace: "return false;",
    },
    ["proxy/downstream/h1-connection", "a client is idle between its requests"],
  ),
  defect(
    "a bearer without end stays with its idle connection",
    {
      file: "upstream/identity/trust.ts",
      find: "if (field.value.length > limits.usualHeadBytes) return this.#bearer(field.value);",
      replace: "",
    },
    ["upstream/identity/trust", "of a bearer beyond 16 KiB nothing is kept"],
  ),
  defect(
    "an idle client's last head stays",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: "    this.#writer = undefined;\n    this.#awaitHead",
      replace: "    this.#awaitHead",
    },
    ["attacks/whole/remembered", "are not remembered for clients that are idle"],
  ),
  defect(
    "long heads wait for nothing",
    {
      file: "upstream/context/request-context.ts",
      find: "return bytes > limits.usualHeadBytes ? bytes : 0;",
      replace: "return bytes > Infinity ? bytes : 0;",
    },
    ["proxy/overload/buffer-limiter", "long heads wait like bytes"],
  ),
  defect(
    "long heads that arrive while too much waits are taken all the same",
    {
      file: "proxy/request/handler.ts",
      find: "if (headBytes === 0 || !buffered.isOver) return undefined;",
      replace: "if (headBytes >= 0 || !buffered.isOver) return undefined;",
    },
    ["proxy/overload/buffer-limiter", "of a thousand long heads in one loop turn"],
  ),
  defect(
    "long heads wait for ever",
    { file: "proxy/request/exchange.ts", find: "buffered.add(-this.headBytes);", replace: "void buffered;" },
    ["proxy/overload/buffer-limiter", "long heads wait like bytes"],
  ),
  defect(
    "any number of bytes waits behind a request",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: " || bytes > limits.usualHeadBytes;",
      replace: ";\n    void bytes;",
    },
    ["proxy/downstream/h1-connection", "behind a request that is not answered a few may wait"],
  ),
  defect(
    "tunnels outlive any shortage",
    {
      file: "proxy/tunnel/upgrade-tunnel.ts",
      find: 'if (this.#state === "open") this.#finish("memory_short");',
      replace: 'if (this.#state === "open") return;',
    },
    ["proxy/tunnel/upgrade-handler", "where memory is short a tunnel ends in order"],
  ),
  defect(
    "a secret is shared by the HPACK tables of all sessions",
    {
      file: "h2/hpack/shared-fields.ts",
      find: "sharedNames.has(field.name) && !field.isNeverIndexed",
      replace: "!field.isNeverIndexed",
    },
    ["h2/hpack/shared-fields", "only fields that repeat and are no secrets are shared"],
  ),
];
