/** Faults in how requests end: what the proxy then sends to their clients and backends. */
import { type Defect, defect } from "../defect.ts";

export const ends: readonly Defect[] = [
  defect(
    "a log is not asked for again",
    {
      file: "upstream/context/request-context.ts",
      find: "|| (context.isLogRead && context.isBodiless)",
      replace: "",
    },
    ["proxy/request/serve", "a GET of a log that was lost before its response"],
  ),
  defect(
    "each long-running GET of a pod is asked for again",
    { file: "kube/request-info.ts", find: ' && info.subresource === "log"', replace: "" },
    ["proxy/request/serve", "a GET of a log that was lost before its response"],
  ),
  defect(
    "the HTTP/1.1 connection of a request that is cut stays open",
    { file: "proxy/request/exchange.ts", find: "    this.down.closeAfter?.();\n", replace: "" },
    ["flows/cut", "the connection of an HTTP/1.1 request that is cut ends behind its answer"],
  ),
  defect(
    "a write that was sent and is cut is told to be unprocessed",
    {
      file: "proxy/request/exchange.ts",
      find: "if (mayHaveRun) this.#reply(failureOfCut(isSafe(this.context)));\n    else ",
      replace: "",
    },
    ["flows/cut", "a request that was sent has an unknown outcome"],
  ),
  defect(
    "a write of unknown outcome may be asked again",
    {
      file: "proxy/request/local-reply.ts",
      find: "return isSafe ?",
      replace: "return isSafe || true ?",
    },
    ["flows/cut", "a request that was sent has an unknown outcome"],
  ),
  defect(
    "an earlier attempt that may have run is forgotten",
    {
      file: "proxy/request/attempt-pair.ts",
      find: "    this.#hasLeft ||= attempt.mayHaveRun;\n",
      replace: "",
    },
    ["flows/cut", "what an earlier one may have begun with has"],
  ),
  defect(
    "what a backend has refused unprocessed counts as sent",
    {
      file: "upstream/pool/attempt.ts",
      find: "if (code === errorCode.REFUSED_STREAM) this.#sentAt = -1;",
      replace: "",
    },
    ["flows/cut", "what a backend has refused unprocessed has not left"],
  ),
  defect(
    "PROTOCOL_ERROR goes on to the client of a write",
    {
      file: "proxy/request/local-reply.ts",
      find: "code === errorCode.REFUSED_STREAM || code === errorCode.PROTOCOL_ERROR",
      replace: "code === errorCode.REFUSED_STREAM",
    },
    ["flows/cut", "a code after which Go's transport sends a write again"],
  ),
  defect(
    "a fault while a request is placed leaves it as it is",
    {
      file: "proxy/request/exchange.ts",
      find: "      this.attemptFaulted(error);",
      replace: "      void error;",
    },
    ["flows/cut", "a fault while a request is placed"],
  ),
  defect(
    "a reset before any answer ends an HTTP/1.1 socket without a word",
    {
      file: "proxy/downstream/h1-stream-writer.ts",
      find: 'if (this.#state === "waiting") return this.#answerReset(code);',
      replace: "",
    },
    ["proxy/downstream/h1-stream-writer", "any other one with a Status"],
  ),
  defect(
    "a request that crosses the end of its socket is executed",
    { file: "proxy/downstream/h1-connection.ts", find: " || this.#socket.writableEnded)", replace: ")" },
    ["proxy/downstream/h1-connection", "a request that crosses the end of an idle socket"],
  ),
  defect(
    "an Upgrade that crosses the end of its socket is asked for",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: "if (this.#socket.writableEnded) return this.destroy();",
      replace: "",
    },
    ["proxy/downstream/h1-connection", "a request that crosses the end of an idle socket"],
  ),
  defect(
    "a fault of the proxy ends an HTTP/1.1 request without an answer",
    {
      file: "proxy/downstream/h1-connection.ts",
      find: "if (!this.cut()) this.destroy();",
      replace: "this.destroy();",
    },
    ["proxy/downstream/h1-connection", "a fault of the proxy costs its client"],
  ),
  defect(
    "a peer's FIN is told when the last byte has left",
    {
      file: "upstream/net/socket.ts",
      find: "      this.#closed();\n      if (!socket.writableEnded) this.end();",
      replace: "      this.end();",
    },
    ["upstream/net/socket", "a peer's FIN is reported at once"],
  ),
  defect(
    "an exchange that is a watch keeps the attempt that its session has",
    { file: "proxy/request/exchange.ts", find: "    this.attempts.handOver();\n", replace: "" },
    ["proxy/request/exchange-states", "a watch is handed to its session"],
  ),
  defect(
    "an exchange that asks again does not say so",
    { file: "proxy/request/exchange.ts", find: '    this.#state = "placing";\n', replace: "" },
    ["proxy/request/exchange-states", "a request that was lost is placed again"],
  ),
  defect(
    "a watch that is over is not cancelled",
    { file: "proxy/request/exchange.ts", find: "this.#watch?.cancel();", replace: "" },
    ["flows/cancellation", "a watch with one attempt: RST_STREAM"],
  ),
  defect(
    "the second of two attempts runs on",
    {
      file: "watch/session/watch-session.ts",
      find: "    this.#cancelFirst();\n    this.#cancelSecond();\n  }",
      replace: "    this.#cancelFirst();\n  }",
    },
    ["flows/cancellation", "a watch with a second attempt: RST_STREAM"],
  ),
  defect(
    "a hedge runs on",
    {
      file: "proxy/request/attempt-pair.ts",
      find: "    this.#endOther();\n    this.#first?.cancel(isAnswered);\n",
      replace: "    this.#other = undefined;\n    this.#first?.cancel(isAnswered);\n",
    },
    ["flows/cancellation", "asked of two: RST_STREAM"],
  ),
  defect(
    "a request that waits for an upstream connection is not forgotten",
    { file: "upstream/pool/attempt.ts", find: "    this.#waitingPool?.forget(this);\n", replace: "" },
    ["flows/cancellation", "waiting for an upstream connection: RST_STREAM"],
  ),
  defect(
    "a backend is named for a server that no backend reaches",
    {
      file: "proxy/observe/peer-outcomes.ts",
      find: "counts.backend !== backend && isHealthy(counts)",
      replace: "counts.backend !== backend",
    },
    ["flows/grey-backend", "a server that no backend reaches names none"],
  ),
  defect(
    "a backend's failures are compared with another backend's successes from before them",
    { file: "proxy/observe/peer-outcomes.ts", find: "first >= start && ", replace: "" },
    [
      "proxy/request/api-failures",
      "a backend that was not tested while its peer was, or whose peer was not, is not named",
    ],
  ),
  defect(
    "a backend is named for a burst of failures during which its peer was not asked",
    {
      file: "proxy/observe/peer-outcomes.ts",
      find: "else if (this.#isAlternating) {",
      replace: "else {",
    },
    [
      "proxy/request/api-failures",
      "failures of one burst name no backend by successes of its peer before or after the burst",
    ],
  ),
];
