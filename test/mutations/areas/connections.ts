/** Faults in upstream connections, and in what their PINGs prove about a backend. */
import { type Defect, defect } from "../defect.ts";

export const connections: readonly Defect[] = [
  defect(
    "one answer of DNS without an address ends its connections",
    {
      file: "proxy/cluster/named-addresses.ts",
      find: "!answers.some((one) =>",
      replace: "!answers.slice(0, 1).some((one) =>",
    },
    ["flows/moved-names", "an outage of DNS changes nothing"],
  ),
  defect(
    "the connections to an address that a name has lost stay",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "else connection.isOutdated = true;\n    }",
      replace: "else void 0;\n    }",
    },
    ["flows/moved-names", "drain within a minute"],
  ),
  defect(
    "the watches of a connection to an address that a name has lost stay on it",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "if (connection.isRetiring) connection.leave();\n      else",
      replace: "if (!connection.isRetiring)",
    },
    ["flows/moved-names", "drain within a minute"],
  ),
  defect(
    "a resolver that hangs is asked again and again",
    {
      file: "proxy/cluster/named-addresses.ts",
      find: "isIpAddress(host) || this.#asking.has(host)",
      replace: "isIpAddress(host)",
    },
    ["flows/moved-names", "an outage of DNS changes nothing"],
  ),
  defect(
    "an upstream connection resets as often as it is asked to, and takes new streams",
    {
      file: "upstream/pool/connection.ts",
      find: "if (!isAnswered && !this.#resets.take(this.#resetCost)) this.yield();",
      replace: "",
    },
    ["upstream/pool/connection", "beyond its budget of resets"],
  ),
  defect(
    "what a client gave up beyond the budget runs on",
    {
      file: "upstream/pool/connection.ts",
      find: "if (!isAnswered && !this.#resets.take(this.#resetCost)) this.yield();",
      replace: "if (!isAnswered && !this.#resets.take(this.#resetCost)) return;",
    },
    ["upstream/pool/connection", "beyond its budget of resets"],
  ),
  defect(
    "a backend that allows few streams is reset as often as any",
    {
      file: "upstream/pool/connection.ts",
      find: "this.#resets.take(this.#resetCost)",
      replace: "this.#resets.take()",
    },
    ["upstream/pool/connection", "a backend that allows few streams bears few resets"],
  ),
  defect(
    "the answer to the proxy's own GOAWAY counts as one of the backend's",
    {
      file: "upstream/pool/connection.ts",
      find: "this.#session.isPeerGoing && !this.#hasYielded",
      replace: "this.#session.isPeerGoing",
    },
    ["upstream/pool/connection", "a backend that answers the proxy's GOAWAY"],
  ),
  defect(
    "a slow upload is taken for silence",
    {
      file: "upstream/pool/connection.ts",
      find: "if (this.#isBufferFull && this.#takenNow > this.#takenBytes) this.#heardAt = this.now;",
      replace: "",
    },
    ["upstream/pool/connection", "a PING behind a backlog"],
  ),
  defect(
    "bytes that the kernel takes at once count as a sign of life from the backend",
    {
      file: "upstream/pool/connection.ts",
      find: "if (this.#isBufferFull && this.#takenNow > this.#takenBytes)",
      replace: "if (this.#takenNow > this.#takenBytes)",
    },
    ["upstream/pool/connection", "bytes that the kernel takes at once"],
  ),
  defect(
    "an upstream connection takes more streams than its backend allows",
    {
      file: "upstream/pool/connection.ts",
      find: "Math.min(this.#options.mostStreams(), this.#session.peerMaxStreams)",
      replace: "this.#options.mostStreams()",
    },
    ["upstream/pool/connection-pool", "an upstream connection takes no more streams than its backend allows"],
  ),
  defect(
    "watches and GETs share upstream connections",
    {
      file: "upstream/pool/pool-key.ts",
      find: 'owner === "" ? `${trust} ${kind}` :',
      replace: 'owner === "" ? `${trust}` :',
    },
    ["upstream/pool/connection-pool", "short requests and watches never share an upstream connection"],
  ),
  defect(
    "private upstream connections are everybody's",
    {
      file: "upstream/pool/pool-key.ts",
      find: "`${trust} ${kind} ${owner}`",
      replace: "`${trust} ${kind}`",
    },
    ["upstream/pool/connection-pool", "isPerClient none gives every client upstream connections of its own"],
  ),
  defect(
    "idle upstream connections stay",
    { file: "upstream/pool/shard.ts", find: "now - connection.idleSince > ms", replace: "ms < 0" },
    ["upstream/pool/connection-pool", "upstream connections beyond the warm ones go"],
  ),
  defect(
    "what a burst has opened stays for a minute",
    {
      file: "upstream/pool/shard.ts",
      find: "idleFor(upstreamLimits.spareConnectionMs)",
      replace: "idleFor(upstreamLimits.idleConnectionMs)",
    },
    ["upstream/pool/shard", "upstream connections that a burst has opened close within 5 s"],
  ),
  defect(
    "a stall of the proxy is held against upstream connections",
    {
      file: "upstream/pool/keepalive.ts",
      find: "if (isLate) for (const connection of connections()) connection.discountStall(now - this.#waitsSince);",
      replace: "",
    },
    ["upstream/pool/keepalive", "time in which the proxy's own loop stood still"],
  ),
  defect(
    "a deadline is met late",
    {
      file: "upstream/pool/keepalive.ts",
      find: "if (now >= dueAt) notify(connection, now - silentSince);",
      replace: "if (now > dueAt + 50) notify(connection, now - silentSince);",
    },
    ["upstream/pool/keepalive", "deadlines are kept to the millisecond"],
  ),
  defect(
    "an upstream connection in a hole that heals dies",
    {
      file: "upstream/pool/keepalive.ts",
      find: "isAnswering ? this.#answeringLimitMs : this.#silentLimitMs",
      replace: "this.#silentLimitMs",
    },
    ["upstream/pool/keepalive", "a silent upstream connection of a backend that answers elsewhere"],
  ),
  defect(
    "a head goes to its client before its body has begun",
    {
      file: "proxy/request/exchange.ts",
      find: "attempt.keepHead(fields);",
      replace: "this.#answer(attempt, status, fields, end);",
    },
    ["flows/large-packets", "handshakes come through"],
  ),
  defect(
    "a head without a body is kept for ever",
    {
      file: "upstream/pool/connection.ts",
      find: "      attempt.passed(this.#answeredPingAt);\n",
      replace: "",
    },
    ["flows/large-packets", "a head without a body is forwarded"],
  ),
  defect(
    "upstream connections die while no backend answers",
    {
      file: "upstream/pool/keepalive.ts",
      find: "if (!isAlone) return Math.max(deadAfterMs, this.#times.deadAfterWhenAllSilentMs);",
      replace: "if (!isAlone) return deadAfterMs;",
    },
    ["flows/all-silent", "all silent for 5000 ms"],
  ),
  defect(
    "an old upstream connection is not given the time that its kernel takes after a long hole",
    {
      file: "upstream/pool/keepalive.ts",
      find: "holeMs > 0 ? mostMs : 0",
      replace: "0",
    },
    ["upstream/pool/keepalive", "after a long hole an upstream connection is given as much time again"],
  ),
  defect(
    "a request that waits for a connection is refused although it has left meanwhile",
    {
      file: "upstream/pool/shard.ts",
      find: "if (waiting.delete(waiter)) waiter.refused(failure);",
      replace: "waiting.delete(waiter);\n    waiter.refused(failure);",
    },
    ["upstream/pool/shard", "a request that has left or is served meanwhile"],
  ),
  defect(
    "what is over when its turn comes is cut where memory is short",
    {
      file: "proxy/overload/load-shedding.ts",
      find: "if (exchange.context.at < oldest || exchange.isEnded) return undefined;",
      replace: "if (exchange.context.at < oldest) return undefined;",
    },
    ["proxy/overload/load-shedding", "a slice in each loop turn"],
  ),
  defect(
    "each look where memory is short ends another tenth while the last one is under way",
    {
      file: "proxy/overload/load-shedding.ts",
      find: "if (this.#isCuttingRequests) return;",
      replace: "",
    },
    ["proxy/overload/load-shedding", "a slice in each loop turn"],
  ),
  defect(
    "all that was held is placed in one loop turn",
    {
      file: "proxy/request/pending-queue.ts",
      find: "      inSlices(this.#clock, Array.from(this.#waiting), (waiting) => {",
      replace: "      Array.from(this.#waiting).forEach((waiting) => {",
    },
    ["proxy/request/pending-queue", "a slice in each loop turn"],
  ),
  defect(
    "a stall of the proxy is part of a silence of all backends",
    {
      file: "health/backends.ts",
      find: "this.#stallAwareClock.now() < this.silentUntil;",
      replace: "this.#clock.now() < this.silentUntil;",
    },
    ["health/backends", "no part of a silence of all"],
  ),
  defect(
    "a backend that died before a stall of the proxy has forgotten what it knew",
    {
      file: "watch/migration/target-picker.ts",
      find: "backends.stateMs(name) < watchLimits.resumeMs",
      replace: "backends.stateMs(name) < 0",
    },
    ["watch/migration/target-picker", "before a stall of the proxy may still know"],
  ),
  defect(
    "connections to a removed backend are given up two seconds after a silence of all",
    {
      file: "upstream/pool/keepalive.ts",
      find: "holeMs > 0 && this.#parts.isRemoved()",
      replace: "holeMs < 0 && this.#parts.isRemoved()",
    },
    ["flows/all-silent", "is removed as a silence of all begins"],
  ),
  defect(
    "of a silence of all only the backend's own return counts",
    {
      file: "upstream/pool/keepalive.ts",
      find: "Math.max(facts().answersAgainAt, silenceOverAt()) - silentSince",
      replace: "facts().answersAgainAt - silentSince",
    },
    ["upstream/pool/keepalive", "though nothing is known of its backend's own silence"],
  ),
  defect(
    "the first answer after a silence of all convicts the other backends at once",
    {
      file: "upstream/pool/keepalive.ts",
      find: "return deadAfterMs + Math.max(0, holeMs);",
      replace: "return deadAfterMs;",
    },
    ["flows/all-silent", "one backend answers first after a silence of all"],
  ),
  defect(
    "a backend that is silent alone is given the time of all",
    {
      file: "upstream/pool/keepalive.ts",
      find: "this.#parts.othersAnsweredAt() > silentSince + upstreamLimits.togetherMs",
      replace: "this.#parts.othersAnsweredAt() > Infinity",
    },
    ["flows/all-silent", "one silent backend beside one that answers"],
  ),
  defect(
    "after a silence of all backends requests go to one that is still silent",
    {
      file: "upstream/pool/pick.ts",
      find: "isMute === true ? 5 : 4",
      replace: "isMute === undefined ? 5 : 4",
    },
    ["flows/all-silent", "writes that begin while all are silent"],
  ),
  defect(
    "a dial that lost its SYN just before a silence ended is waited for",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "this.#failStuck();\n    for (const shard",
      replace: "for (const shard",
    },
    ["upstream/pool/redial", "has its time, and is begun again"],
  ),
  defect(
    "requests choose a backend while all are silent",
    {
      file: "proxy/request/exchange.ts",
      find: "if (backends.areAllSilent) return this.#enqueue(noneAnswers);",
      replace: "",
    },
    ["flows/all-silent", "writes that begin while all are silent"],
  ),
  defect(
    "one worker's silent connections make a backend suspect for all",
    {
      file: "health/connection-states.ts",
      find: "return isWorse(after, best) ? worsened(before, best) : evidence;",
      replace: "return evidence;",
    },
    ["health/connection-states", "no process has an answering connection"],
  ),
  defect(
    "with workers, a frozen backend passes for one that loses large packets",
    {
      file: "proxy/cluster/shared-verdict.ts",
      find: "return isRecent && this.#states.isAnswering(backend);",
      replace: "return isRecent;",
    },
    ["proxy/cluster/shared-verdict", "does not lose only large packets"],
  ),
  defect(
    "tunnels are cut while all are silent",
    {
      file: "health/backends.ts",
      find: "isSilentlyDead(facts) && !this.areAllSilent",
      replace: "isSilentlyDead(facts)",
    },
    ["health/backends", "what has no PING is kept while no backend answers"],
  ),
  defect(
    "a short outage of a client's network cuts its tunnel",
    {
      file: "proxy/tunnel/stuck-sockets.ts",
      find: "(counts.get(watched.keys.down) ?? 0) >= hungClientRetransmits",
      replace: "(counts.get(watched.keys.down) ?? 0) >= hungRetransmits",
    },
    ["proxy/tunnel/stuck-sockets", "a client's network that is away"],
  ),
  defect(
    "a tunnel is cut for the hole that all were in",
    {
      file: "proxy/tunnel/stuck-sockets.ts",
      find: "watched.excused === 0 ? 0 : watched.excused + triesAfterHole",
      replace: "0",
    },
    ["proxy/tunnel/stuck-sockets", "a hole of all is not the tunnel's"],
  ),
  defect(
    "one GOAWAY is taken for all",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "opened.length > 0 && opened.every((connection) => connection.isPeerGoing)",
      replace: "opened.some((connection) => connection.isPeerGoing)",
    },
    ["upstream/pool/pool-health", "GOAWAY on one upstream connection is that upstream connection's"],
  ),
  defect(
    "one silent upstream connection makes its backend suspect",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "      return;\n    }\n    this.#hasReportedSilence = true;",
      replace: "    }\n    this.#hasReportedSilence = true;",
    },
    ["upstream/pool/pool-health", "one silent upstream connection among others"],
  ),
  defect(
    "an upstream connection that falls silent in the middle of an answer has no probe asked for large packets",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "if (isNews && connection.wasInUse) this.#options.probeLargePackets();",
      replace: "",
    },
    ["flows/large-packets", "handshakes come through"],
  ),
  defect(
    "a probe that is slow while an upstream connection recovers makes it a path MTU",
    {
      file: "health/prober.ts",
      find: "if (this.#running.has(run) && !isOvertaken && mayLoseLargePackets())",
      replace: "if (run.begunAt >= 0)",
    },
    ["health/prober-packets", "a session is stuck in an answer"],
  ),
  defect(
    "large packets that are lost are no reason to ask elsewhere",
    {
      file: "health/backend.ts",
      find: 'return { ...facts, readiness: "hanging", packetsLostAt: at,',
      replace: "return { ...facts, packetsLostAt: at,",
    },
    ["flows/large-packets", "handshakes come through"],
  ),
  defect(
    "the probe's question fits into a small packet",
    { file: "health/probes/ready.ts", find: '{ fields: [["x-padding", padding]] }', replace: "{}" },
    ["health/probes/ready", "request and answer each take a large packet"],
  ),
  defect(
    "the probe's answer fits into a small packet",
    {
      file: "health/probes/ready.ts",
      find: "answerOf(agent, verbose(path),",
      replace: "answerOf(agent, path,",
    },
    ["health/probes/ready", "request and answer each take a large packet"],
  ),
  defect(
    "a LIST that two upstream connections of a backend swallow is asked at a third of them",
    {
      file: "proxy/request/hedge.ts",
      find: "const mayMove = prompt === undefined || attempts.hasTwo;",
      replace: "const mayMove = prompt === undefined;",
    },
    ["proxy/request/hedge", "two upstream connections of one backend swallow the same LIST"],
  ),
  defect(
    "a pause of the proxy is charged from its beginning to the next beat",
    {
      file: "upstream/pool/keepalive.ts",
      find: "connection.discountStall(now - this.#waitsSince)",
      replace: "connection.discountStall(lateMs)",
    },
    ["flows/standstill", "paused for 5 s"],
  ),
  defect(
    "a tunnel outlives its dead backend",
    {
      file: "proxy/tunnel/stuck-sockets.ts",
      find: 'const stopLost = backends.onLost(backend, () => cut("backend_dead"));',
      replace: "const stopLost = (): void => {};",
    },
    ["proxy/tunnel/stuck-sockets", "a tunnel ends with its backend"],
  ),
  defect(
    "a backend without HTTP/2 has a fault of TLS",
    {
      file: "upstream/net/untrusted-certificate.ts",
      find: "reason.message.includes(noProtocolInCommon)",
      replace: "reason.message === noProtocolInCommon",
    },
    ["upstream/net/connect", "a backend without h2 are refused by name"],
  ),
];
