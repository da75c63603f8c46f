/** Faults in watches that a unit test must see (test/simulation/watch-defects.ts has those of whole watches). */
import { type Defect, defect } from "../defect.ts";

export const watches: readonly Defect[] = [
  defect(
    "an event without end is held",
    {
      file: "watch/json-events.ts",
      find: "return this.#length <= limits.eventBytes;",
      replace: "return this.#length > 0;",
    },
    ["watch/json-events", "a line without end is given up"],
  ),
  defect(
    "versions are compared as texts",
    { file: "watch/version.ts", find: "if (a.length !== b.length) return a.length - b.length;", replace: "" },
    ["watch/version", "versions are compared as numbers of any size"],
  ),
  defect(
    "a watch goes on one version too late",
    {
      file: "watch/progress.ts",
      find: 'return version === "" ? undefined : version;',
      replace: 'return version === "" ? undefined : String(Number(version) + 1);',
    },
    ["watch/progress", "an exact watch is live with its first event"],
  ),
  defect(
    "the cursor moves back",
    {
      file: "watch/progress.ts",
      find: "if (ahead > 0) return this.#advance(event);",
      replace: "if (ahead !== 0) return this.#advance(event);",
    },
    ["watch/progress", "of two legs the first to advance wins"],
  ),
  defect(
    "the whole state is asked for again",
    { file: "watch/resume.ts", find: '  "sendInitialEvents",\n', replace: "" },
    ["watch/resume", "a resume asks for the same from another version on"],
  ),
  defect(
    "the client's deadline is forgotten",
    { file: "watch/resume.ts", find: "    `timeoutSeconds=${seconds}`,\n", replace: "" },
    ["watch/resume", "it ends when the client wanted"],
  ),
  defect(
    "a second leg's end is taken for the client's deadline",
    {
      file: "proxy/watching.ts",
      find: 'if (over === "ended" && isDeadline(this.legs.times.leftMs)) {',
      replace: 'if (over === "ended") {',
    },
    ["proxy/renewals", "no end of a watch that is older than half an hour"],
  ),
  defect(
    "a restart is taken for the server's timeout",
    { file: "watch/ending.ts", find: "(isOurs || isDraining ?", replace: "(isOurs ?" },
    ["proxy/watching", "a restart is not the server's timeout"],
  ),
  defect(
    "an early end of a request of ours is taken for the server's timeout",
    { file: "watch/ending.ts", find: "(isOurs || isDraining ?", replace: "(isDraining ?" },
    ["proxy/watching", "a restart is not the server's timeout"],
  ),
  defect(
    "a bookmark that is taken out takes a Table's columns with it",
    { file: "proxy/watch-order.ts", find: "/cbor|table/i", replace: "/cbor/i" },
    ["proxy/watching-bytes", "a Table is asked for without them"],
  ),
  defect(
    "one backend that does not serve a resource is taken for all",
    {
      file: "proxy/destinations.ts",
      find: "views.every(({ name }) => notServing.includes(name))",
      replace: "views.some(({ name }) => notServing.includes(name))",
    },
    ["proxy/watching-patience", "one backend that does not serve it yet is not all of them"],
  ),
  defect(
    "a resource that no backend serves any more counts as a move that failed",
    {
      file: "proxy/watching.ts",
      find: "return this.#parts.moves.where.isServedNowhere(this.#pursuit.notServing);",
      replace: "return false;",
    },
    ["proxy/watching-patience", "a resource that no backend serves any more ends at once"],
  ),
  defect(
    "a compressed answer is read as events",
    { file: "watch/framing.ts", find: 'if (contentEncoding !== "") return undefined;', replace: "" },
    ["watch/framing", "a compressed answer is opaque"],
  ),
];
