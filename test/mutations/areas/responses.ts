/** Faults by which a malformed response, or a connection that stands still, costs more than it must. */
import { type Defect, defect } from "../defect.ts";

export const responses: readonly Defect[] = [
  defect(
    "a response head that is too long ends the connection",
    {
      file: "h2/frame/reader.ts",
      find: "const { skipFields } = this.#streams;",
      replace: "const skipFields: undefined | (() => number) = undefined;",
    },
    ["flows/malformed-responses", "a response head of 240 kB is a 502 that names the size"],
  ),
  defect(
    "a head decoded in parts leaves the fields that it evicts in the table",
    { file: "h2/hpack/hpack-decoder.ts", find: "if (goesToTable) this.#table.clear();", replace: "" },
    ["h2/session/long-heads", "leaves the same table as one decoded whole"],
  ),
  defect(
    "a head that is dropped has no end",
    {
      file: "h2/frame/reader.ts",
      find: "if (this.#work > h2Limits.longBlockBytes)",
      replace: "if (this.#work < 0)",
    },
    ["h2/session/long-heads", "a head above 16 MiB ends the connection"],
  ),
  defect(
    "DATA after the end of a response ends the connection",
    {
      file: "h2/session/streams.ts",
      find: "    if (this.#strayBytes.take(count)) return;\n",
      replace: '    if (!this.#strayBytes.take(count)) throw sessionError(errorCode.STREAM_CLOSED, "x");\n',
    },
    ["h2/session/long-heads", "DATA after END_STREAM in a response resets its stream"],
  ),
  defect(
    "a stream's WINDOW_UPDATE of 0 from a backend ends the connection",
    {
      file: "h2/session/streams.ts",
      find: "if (increment === 0 && (this.#isServer || id === 0))",
      replace: "if (increment === 0)",
    },
    ["h2/session/long-heads", "a WINDOW_UPDATE of 0 in a response resets its stream"],
  ),
  defect(
    "a malformed end of a response that the client has begun to get is not told to the operator",
    {
      file: "proxy/request/failures.ts",
      find: "if (fault !== undefined) journal",
      replace: 'if (fault === "") journal',
    },
    ["flows/malformed-responses", "are named in the journal"],
  ),
  defect(
    "a connection that is stuck ends its writes after 5 s",
    {
      file: "upstream/pool/keepalive.ts",
      find: "isAnswering && ms < upstreamLimits.boundPatienceMs && connection.leaveBehind()",
      replace: "isAnswering && ms < 0 && connection.leaveBehind()",
    },
    ["flows/large-packets", "a hole of 25 s for large packets on the connections in use"],
  ),
  defect(
    "connections end after 2 s if all of them wait for a large packet",
    {
      file: "upstream/pool/keepalive.ts",
      find: 'fresh === "answer" || passesSmall || health',
      replace: 'fresh === "answer" || health',
    },
    ["flows/large-packets", "a hole of 25 s for large packets on all connections"],
  ),
  defect(
    "a read stays on a stuck connection as long as a write",
    {
      file: "upstream/pool/attempt.ts",
      find: "if (this.#owner.isBound === true)",
      replace: 'if (this.backend !== "")',
    },
    ["flows/large-packets", "what a connection cannot deliver for 30 s ends then"],
  ),
  defect(
    "a tunnel is cut after four retransmissions",
    { file: "proxy/tunnel/stuck-sockets.ts", find: "hungRetransmits = 7", replace: "hungRetransmits = 4" },
    ["proxy/tunnel/stuck-sockets", "a tunnel to a backend that answers lives for 30 s"],
  ),
  defect(
    "a lost write is told 502",
    {
      file: "proxy/request/local-reply.ts",
      find: "if (code === lost && mayRunTwice)",
      replace: "if (code === lost)",
    },
    ["proxy/request/serve", "a write of unknown outcome is not"],
  ),
  defect(
    "only the process with the proof may refute another history",
    {
      file: "proxy/cluster/shared-verdict.ts",
      find: "    provers.clear();\n    return evidence;",
      replace: "    provers.delete(process);\n    return provers.size === 0 ? evidence : undefined;",
    },
    ["proxy/cluster/shared-verdict", "any process refutes the proof of another history"],
  ),
  defect(
    "no entry tells that a backend's history cannot be checked",
    { file: "watch/detectors/forked-histories.ts", find: "check.isOverdue = true;", replace: "return;" },
    ["flows/unchecked-history", "a backend that no process can check any more"],
  ),
  defect(
    "the stale-read guard demands versions of a history that is gone",
    { file: "proxy/observe/stale-read-guard.ts", find: "this.#seenVersions.clear();", replace: "" },
    ["flows/unchecked-history", "the stale-read guard demands no version of the old one"],
  ),
  defect(
    "a worker's worse connection hides a loss",
    { file: "health/connection-states.ts", find: "? worsened(before, best)", replace: "? undefined" },
    ["health/connection-states", "a process's worse connection hides no loss"],
  ),
  defect(
    "a backend that left with GOAWAY is not dialled without a request",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "&& isSilent(this.#options.facts())) this.#isDead = true;",
      replace: "&& isSilent(this.#options.facts())) this.#isDead ||= false;",
    },
    ["flows/lone-dials", "becomes ready without a client's request"],
  ),
  defect(
    "a backend without streams is dialled without a pause",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "if (!this.#mayDialBarred(shard)) return;",
      replace: "",
    },
    ["flows/lone-dials", "is dialled at most once a second"],
  ),
];
