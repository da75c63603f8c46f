/** Faults in the pace of moves that a unit test must detect. */

import { type Defect, defect } from "../defect.ts";

export const moves: readonly Defect[] = [
  defect(
    "a watch with a parameter that not all apiservers know moves to any backend",
    {
      file: "watch/migration/target-picker.ts",
      find: "servedBy === undefined ? views",
      replace: "servedBy !== undefined ? views",
    },
    ["watch/migration/uncommon-parameters", "moves to a backend of the same minor version, and to no other"],
  ),
  defect(
    "a backend whose version is unknown counts as one of the same version",
    {
      file: "watch/migration/target-picker.ts",
      find: 'other === "" || minor === "" ? name === backend :',
      replace: "",
    },
    ["watch/migration/uncommon-parameters", "where no version is known"],
  ),
  defect(
    "a sentinel compares watches that two backends may understand differently",
    {
      file: "watch/migration/target-picker.ts",
      find: "names.filter((name) => fit.includes(name))",
      replace: "names.filter((name) => fit.includes(name) || true)",
    },
    ["watch/migration/uncommon-parameters", "no second stream for any other reason"],
  ),
  defect(
    "the balancer moves a watch to a backend that may send other events",
    {
      file: "watch/migration/migrations.ts",
      find: "const target = this.targets.fitFor(watch).find(",
      replace: "const target = this.#parts.backends.views.find(",
    },
    ["watch/migration/uncommon-parameters", "no second stream for any other reason"],
  ),
  defect(
    "a worker does not learn the versions of backends",
    { file: "fleet/workers/worker-link.ts", find: "cluster?.versions.told(backend, version);", replace: "" },
    ["fleet/workers/worker-link", "takes a backend's version from the verdicts"],
  ),
  defect(
    "late answers do not make the window of moves smaller",
    {
      file: "watch/migration/move-pace.ts",
      find: "this.#window = Math.max(moveWindow.least, this.#window - 1);",
      replace: "return this.settled(backend);",
    },
    ["watch/migration/move-pace", "an apiserver that becomes slower gets fewer watches"],
  ),
  defect(
    "the fastest answer of one backend makes all answers of another one late",
    {
      file: "watch/migration/move-pace.ts",
      find: "this.#shortestMs.get(backend) ?? ms",
      replace: "Math.min(ms, ...this.#shortestMs.values())",
    },
    ["watch/migration/move-pace", "a backend that always takes 9 ms longer than another one"],
  ),
  defect(
    "the fastest answers are measured only once",
    {
      file: "watch/migration/move-pace.ts",
      find: "this.#shortestMs.clear();",
      replace: "",
    },
    ["watch/migration/move-pace", "one acceptance that seemed to take no time"],
  ),
  defect(
    "moves go on to a backend that answers no watch",
    {
      file: "watch/migration/move-pace.ts",
      find: "now - since >= moveWindow.silentMs &&",
      replace: "now - since < 0 &&",
    },
    ["watch/migration/migrations", "a backend that answers PINGs but no watch"],
  ),
  defect(
    "a suspect watch that the pace gives no hedge waits for the next tick",
    {
      file: "watch/migration/migrations.ts",
      find: "this.#suspect.add(watch, false);",
      replace: "",
    },
    ["watch/migration/migrations", "the watches of a frozen apiserver get hedges as fast"],
  ),
  defect(
    "a watch whose apiserver answers again still gets its hedge",
    {
      file: "watch/migration/migrations.ts",
      find: "if (attempt?.isSuspect === true) this.#contain(",
      replace: "if (attempt !== undefined) this.#contain(",
    },
    ["watch/migration/migrations", "a watch that waits for its hedge gets none"],
  ),
  defect(
    "a request for a watch that is given up counts as unanswered for ever",
    {
      file: "watch/session/watch-session.ts",
      find: "if (this.second?.isAccepted === false) this.migrations.pace.settled(this.second.attempt.backend);",
      replace: "",
    },
    ["watch/migration/migrations", "every request for a watch is settled, however it ends"],
  ),
  defect(
    "a cache that is being filled slows all moves down",
    {
      file: "watch/session/watch-session.ts",
      find: "if (!isInitialising(answer)) this.migrations.pace.slowDown();",
      replace: "this.migrations.pace.slowDown();\n    if (!isInitialising(answer)) return;",
    },
    ["watch/migration/migrations", "five caches that are being filled slow no watch"],
  ),
];
