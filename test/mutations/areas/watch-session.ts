/** Faults in the states of a watch session. */
import { type Defect, defect } from "../defect.ts";

export const watchSession: readonly Defect[] = [
  defect(
    "a sentinel's second stream stays a sentinel's when the first is lost",
    {
      file: "watch/session/watch-session.ts",
      find: "    // lost stream.\n    this.isPosted = false;",
      replace: "",
    },
    ["watch/detectors/sentinels", "waited for like any other, and asked elsewhere"],
  ),
  defect(
    "an impossible input of a watch session is passed over",
    {
      file: "watch/session/watch-session.ts",
      find: "    this.#parts.host.attemptFaulted(fault);\n    return false;",
      replace: "    void fault;\n    return false;",
    },
    ["watch/session/session-state", "an input that is impossible is a fault of the proxy"],
  ),
  defect(
    "no invariant of a watch session is looked at",
    {
      file: "watch/session/watch-session.ts",
      find: "return broken && `${String(this)}: ${broken}`;",
      replace: "return undefined;",
    },
    ["watch/session/session-state", "the invariants are checked on the session itself"],
  ),
  defect(
    "the end of a sentinel's second stream counts as a repeated end",
    {
      file: "watch/session/resume-retry.ts",
      find: 'reason === "ended" && !hasOther',
      replace: 'reason === "ended"',
    },
    ["watch/migration/transcripts", "sentinel-ended.txt"],
  ),
  defect(
    "a wait that is over still counts as one",
    {
      file: "watch/session/resume-retry.ts",
      find: "        this.#stopWaiting = undefined;\n        run();",
      replace: "        run();",
    },
    ["watch/session/resume-retry", "a wait that is over is none"],
  ),
  defect(
    "a stream that waits for nothing passes the invariants",
    {
      file: "watch/session/watch-state.ts",
      find: "!none.includes(state) || isWaiting,",
      replace: "!none.includes(state) || isWaiting || true,",
    },
    ["watch/session/watch-state", "a violation is found: a session without a stream waits"],
  ),
  defect(
    "a watch loses the first stream while another is open for a bookmark only, and takes that for its successor",
    {
      file: "watch/session/watch-state.ts",
      find: 'refreshing: { promote: "streaming",',
      replace: 'refreshing: { lose: "resuming", promote: "streaming",',
    },
    ["watch/session/watch-state", "what may follow refreshing"],
  ),
  defect(
    "a second stream stays open when the first answers again",
    {
      file: "watch/session/watch-session.ts",
      find: "if (!this.isPosted) return this.dropSecond();",
      replace: "if (!this.isPosted) return;",
    },
    ["watch/migration/transcripts", "hedged-and-cleared.txt"],
  ),
  defect(
    "a watch whose backend is silent gets no second stream",
    {
      file: "watch/migration/migrations.ts",
      find: "    if (!watch.mayHedge) return;\n    const isDoubtful",
      replace: "    return;\n    const isDoubtful",
    },
    ["watch/migration/transcripts", "hedged-and-cleared.txt"],
  ),
  defect(
    "an ADDED as new as the bound of the initial events ends them",
    {
      file: "watch/session/session-progress.ts",
      find: "compareVersions(version, upTo) > 0",
      replace: "compareVersions(version, upTo) >= 0",
    },
    ["watch/session/session-progress", "an ADDED newer than all initial events"],
  ),
  defect(
    "no list bounds the initial events",
    {
      file: "watch/detectors/initial-events.ts",
      find: "if (context === undefined || !this.#budget.take()) return;",
      replace: "return;",
    },
    ["watch/migration/transcripts", "initial-events-bounded.txt"],
  ),
  defect(
    "every event of a stream requests another bound",
    { file: "watch/detectors/initial-events.ts", find: "reading.initialUpTo !== undefined || ", replace: "" },
    ["watch/detectors/initial-events", "a stream has one list"],
  ),
  defect(
    "a watch that moves when it should be refreshed is forgotten",
    {
      file: "watch/detectors/bookmark-refresh.ts",
      find: "if (attempt === undefined || !watch.mayHedge) return this.#postpone(refresh);",
      replace: "if (attempt === undefined || !watch.mayHedge) return false;",
    },
    ["watch/detectors/bookmark-refresh", "it gets its bookmark where it goes"],
  ),
  defect(
    "a sentinel is never refreshed",
    {
      file: "watch/migration/migrations.ts",
      find: '!watch.mayHedge || watch.state === "refreshing") return false;',
      replace: "!watch.mayHedge || watch.second !== undefined) return false;",
    },
    ["watch/detectors/bookmark-refresh", "a sentinel gets its bookmark"],
  ),
  defect(
    "a move from a draining backend takes the place of a refresh",
    {
      file: "watch/migration/migrations.ts",
      find: 'reason === "draining" && watch.state === "refreshing"',
      replace: 'reason === "draining" && watch.state === "parked"',
    },
    ["watch/detectors/bookmark-refresh", "the watch moves when it has its bookmark"],
  ),
  defect(
    "a lasting replay loop is reported with the limit instead of its number",
    {
      file: "proxy/observe/replay-loop-detector.ts",
      find: "return Math.max(this.#count, this.#countBefore);",
      replace: "return this.#count;",
    },
    [
      "proxy/observe/replay-loop-detector",
      "a loop that lasts is reported with the number of the minute before",
    ],
  ),
];
