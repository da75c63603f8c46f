/** Faults in the detection of a forked etcd history that a unit test must detect. */

import { type Defect, defect } from "../defect.ts";

export const histories: readonly Defect[] = [
  defect(
    "a list that is older than what was shown proves nothing",
    {
      file: "watch/detectors/forked-histories.ts",
      find: "const isForked = compareVersions(version, seen) < 0;",
      replace: "const isForked = compareVersions(version, seen) < 0 && seen === version;",
    },
    ["watch/detectors/forked-histories", "a backend that comes back with an older history is dead"],
  ),
  defect(
    "a client keeps what another history has shown it",
    {
      file: "watch/session/watch-session.ts",
      find: "if (first.isOfHistory(version)) this.#parts.host.breaksOff();\n    else this.#giveUp(first);",
      replace: "this.#giveUp(first);",
    },
    ["watch/detectors/forked-histories", "what it has shown to clients is taken back"],
  ),
  defect(
    "a backend with another history is asked when no other backend is there",
    {
      file: "health/backend.ts",
      find: '{ isForked: true, verdict: "dead" }',
      replace: '{ isForked: true, verdict: "suspect" }',
    },
    ["watch/detectors/forked-histories", "while it is the only one that answers no request is sent there"],
  ),
  defect(
    "a backend whose wrong history has grown past what clients have seen is one like any other",
    {
      file: "watch/detectors/forked-histories.ts",
      find: "if (compareVersions(version, before) < 0 || compareVersions(after, version) < 0) {",
      replace: "if (compareVersions(version, before) < 0) {",
    },
    ["watch/detectors/forked-histories", "a history that writes have carried past the right one"],
  ),
  defect(
    "one agreement by chance makes a backend with another history one like any other",
    {
      file: "watch/limits.ts",
      find: "historyConfirmations: 2,",
      replace: "historyConfirmations: 1,",
    },
    ["watch/detectors/forked-histories", "a history that writes have carried past the right one"],
  ),
  defect(
    "several confirmations of one backend's history run at a time",
    {
      file: "watch/detectors/forked-histories.ts",
      find: "    if (this.#confirming.has(backend)) return;\n",
      replace: "",
    },
    ["watch/detectors/forked-histories", "only one confirmation runs at a time"],
  ),
  defect(
    "a confirmation whose lists take long counts",
    {
      file: "watch/limits.ts",
      find: "historyConfirmMs: 1000,",
      replace: "historyConfirmMs: 15_000,",
    },
    ["watch/detectors/forked-histories", "a confirmation whose three lists take long"],
  ),
  {
    name: "any list that is new enough makes a backend with another history one like any other",
    mutations: [
      {
        file: "watch/detectors/forked-histories.ts",
        find: "if (proof?.isRefuted === false) {",
        replace: "if (proof?.isRefuted === false && proof.until < 0) {",
      },
      {
        file: "watch/detectors/forked-histories.ts",
        find: "isFirst || proof !== undefined ||",
        replace: "isFirst ||",
      },
      {
        file: "watch/detectors/forked-histories.ts",
        find: " && this.#isRefuted(backend, question)",
        replace: "",
      },
    ],
    test: "watch/detectors/forked-histories",
    fails: "a quiet resource that is the same in both histories",
  },
];
