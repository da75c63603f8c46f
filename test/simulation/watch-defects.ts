/**
 * Deliberate faults in the code that follows, moves and ends watches. Each one replaces a piece of source during
 * loading. For each there is a scene that must detect it, and a list of validators, one of which must report it first.
 */
import type { Mutation } from "./mutated.ts";
import type { Validator } from "./watches/findings.ts";

export type WatchDefect = {
  /** Completes the sentence "it is seen that ...". */
  readonly name: string;
  readonly mutations: readonly Mutation[];
  /**
   * The scene that detects the fault: merged streams, quiet watches, custom resources or restored copies of etcd. A
   * list of validators means the full watch scene, in which one of them must report the fault first.
   */
  readonly scene: "merge" | "quiet" | "custom" | "forks" | readonly Validator[];
  /** In the full watch scene, the seed that is tried first. Set for a fault that few seeds show; default: 1. */
  readonly firstSeed?: number;
};

const progress = "watch/session/session-progress.ts";
const reading = "watch/session/session-progress.ts";

/** Faults in the merge of upstream streams into one watch. The scene has no proxy. */
const ofMerging: readonly WatchDefect[] = [
  {
    name: "a watch goes on behind an open version, not before it",
    scene: "merge",
    mutations: [
      {
        file: progress,
        find: "this.#isRepeating && !this.#isComplete ? this.#previous : this.#cursor",
        replace: "this.#cursor",
      },
    ],
  },
  {
    name: "a watch goes on one version too late",
    scene: "merge",
    mutations: [
      {
        file: progress,
        find: 'return version === "" ? undefined : version;',
        replace: 'return version === "" ? undefined : String(Number(version) + 1);',
      },
    ],
  },
  {
    name: "what was delivered of an open version is delivered again",
    scene: "merge",
    mutations: [
      {
        file: progress,
        find: "if (mark.count <= delivered.count)\n",
        replace: "if (mark.count < delivered.count)\n",
      },
    ],
  },
  {
    name: "the version before the open one is forgotten",
    scene: "merge",
    mutations: [{ file: progress, find: "this.#previous = this.#cursor;", replace: "" }],
  },
  {
    name: "the second stream's events are forwarded as well",
    scene: "merge",
    mutations: [
      {
        file: progress,
        find: 'return ahead < 0 ? "drop" : this.#same(event, reading);',
        replace: 'return ahead < 0 ? "forward" : this.#same(event, reading);',
      },
    ],
  },
  {
    name: "the cursor moves back",
    scene: "merge",
    mutations: [
      {
        file: progress,
        find: "if (ahead > 0) return this.#advance(event, reading);",
        replace: "if (ahead !== 0) return this.#advance(event, reading);",
      },
    ],
  },
  {
    name: "a bookmark of the slower stream is forwarded",
    scene: "merge",
    mutations: [
      { file: progress, find: 'if (ahead < 0) return "drop";', replace: 'if (ahead < 0) return "forward";' },
    ],
  },
  {
    name: "a bookmark does not move the cursor",
    scene: "merge",
    mutations: [
      { file: progress, find: "this.#cursor = version;\n    this.#isComplete = true;", replace: "" },
    ],
  },
  {
    name: "versions are compared as texts",
    scene: "merge",
    mutations: [
      {
        file: "kube/resource-version.ts",
        find: "if (a.length !== b.length) return a.length - b.length;",
        replace: "",
      },
    ],
  },
  {
    name: "events of another version are counted with the open one",
    scene: "merge",
    mutations: [{ file: reading, find: "isNext ? this.count + 1 : 1", replace: "this.count + 1" }],
  },
  {
    name: "a stream's own bookmark is not held against it",
    scene: "merge",
    mutations: [
      {
        file: reading,
        find: "compareVersions(version, this.bookmark) > 0",
        replace: "compareVersions(version, this.bookmark) >= 9",
      },
    ],
  },
  {
    name: "a stream requested from the open version counts as behind it",
    scene: "merge",
    mutations: [
      {
        file: reading,
        find: "compareVersions(this.from, delivered.version) >= 0",
        replace: "compareVersions(this.from, delivered.version) > 0",
      },
    ],
  },
];

const stream = "watch/session/watch-stream.ts";
const session = "watch/session/watch-session.ts";
const resume = "kube/resume-request.ts";
const ending = "watch/session/end-verdict.ts";
const order = "watch/session/watch-context.ts";

/** A fault that replaces one piece of one file. `scene` is the list of validators that may report it. */
function defect(name: string, scene: readonly Validator[], mutation: Mutation): WatchDefect {
  return { name, scene, mutations: [mutation] };
}

/** Faults in how bytes are split into events and reassembled. */
const ofBytes: readonly WatchDefect[] = [
  defect("a byte of what is held is dropped", ["whole", "ends"], {
    file: stream,
    find: "this.#held.add(bytes, start, end);",
    replace: "this.#held.add(bytes, start + 1, end);",
  }),
  defect("half an event goes on", ["whole", "unique", "progress", "reliable"], {
    file: stream,
    find: "    this.#send(bytes, from, at);\n    this.#hold(bytes, at, end);",
    replace: "    this.#send(bytes, from, end);",
  }),
  defect("the half that was held comes behind the rest", ["whole"], {
    file: stream,
    find: "    this.#held?.moveTo((held) => this.#taker.release(held));\n    this.#held = undefined;\n    this.#taker.forward(bytes, start, end, this);",
    replace:
      "    this.#taker.forward(bytes, start, end, this);\n    this.#held?.moveTo((held) => this.#taker.release(held));\n    this.#held = undefined;",
  }),
  defect("what is held keeps its blocks", ["tidy"], {
    file: "h2/core/buffered.ts",
    find: "for (const { block } of pieces) if (block !== undefined) giveBack(block);",
    replace: "",
  }),
  defect("an event of both streams is forwarded twice", ["unique", "ordered", "bookmarkable", "whole"], {
    file: stream,
    find: 'if (fate !== "forward") {',
    replace: 'if (fate !== "forward" && fate !== "drop") {',
  }),
  defect("what is held is never granted", ["fresh", "progress", "deadline"], {
    file: stream,
    find: "    this.attempt.up?.grant(end - start);\n",
    replace: "",
  }),
  defect("versions of protobuf events are not found", ["ends"], {
    file: "watch/codec/protobuf-metadata.ts",
    find: "resourceVersion: 6 }",
    replace: "resourceVersion: 5 }",
  }),
];

/** Faults in the request that moves a watch. */
const ofRequests: readonly WatchDefect[] = [
  defect("a watch is asked for one version too far on", ["reliable", "bookmarkable", "ends", "carried"], {
    file: resume,
    find: "`resourceVersion=${version}`",
    replace: "`resourceVersion=${Number(version) + 1}`",
  }),
  defect("a watch is asked for one version too far back", ["ends"], {
    file: resume,
    find: "`resourceVersion=${version}`",
    replace: "`resourceVersion=${Number(version) - 1}`",
  }),
  defect("the time that has passed is given again", ["identity"], {
    file: resume,
    find: "(leftMs ?? limits.watchMostMs - ageMs)",
    replace: "(leftMs === undefined ? limits.watchMostMs : leftMs + ageMs)",
  }),
  defect("the client's deadline is forgotten", ["identity"], {
    file: resume,
    find: "    `timeoutSeconds=${seconds}`,\n",
    replace: "",
  }),
  defect("the whole state is asked for again", ["identity"], {
    file: resume,
    find: '  "sendInitialEvents",\n',
    replace: "",
  }),
  defect("resourceVersionMatch is left in", ["identity"], {
    file: resume,
    find: '  "resourceVersionMatch",\n',
    replace: "",
  }),
  defect("a selector is lost", ["identity"], {
    file: resume,
    find: '  "limit",\n',
    replace: '  "labelSelector",\n',
  }),
  defect("bookmarks that only the proxy asked for go on", ["bookmarkable"], {
    file: progress,
    find: 'if (this.#options.isInjected && event.type === "BOOKMARK") return fate === "forward" ? "drop" : fate;',
    replace: "",
  }),
  defect("a watch moves without its client's credential", ["identity"], {
    file: order,
    find: "fields: fieldsFor(context, path)",
    replace: 'fields: fieldsFor(context, path).filter(({ name }) => name !== "authorization")',
  }),
  defect("a watch moves without its form", ["identity"], {
    file: order,
    find: "fields: fieldsFor(context, path)",
    replace: 'fields: fieldsFor(context, path).filter(({ name }) => name !== "accept")',
  }),
];

/** Faults in how the proxy reacts to an end, a refusal or silence. */
const ofEndings: readonly WatchDefect[] = [
  defect("a lost backend ends its watches", ["ends"], {
    file: ending,
    find: "  if (ending.isResumable) return resume;\n  return isUntouched(ending)",
    replace: "  return isUntouched(ending)",
  }),
  defect("an early end goes on to the client", ["ends"], {
    file: ending,
    find: "if (ending.isResumable && (ending.isDraining || !ending.isRepeated)) return resume;",
    replace: "",
  }),
  {
    ...defect("an end without events is not held back", ["ends"], {
      file: ending,
      find: "return liveEvents > 0 ? 0 : Math.max(0, watchLimits.shortWatchMs - liveMs);",
      replace: "return 0 * liveEvents * liveMs;",
    }),
    firstSeed: 2400,
  },
  defect("a watch outlives its client's deadline", ["deadline", "ends", "identity"], {
    file: ending,
    find: "leftMs !== undefined && leftMs <= watchLimits.watchDueMs",
    replace: "leftMs !== undefined && leftMs <= -1e9",
  }),
  defect("another backend's ERROR goes on", ["ends"], {
    file: progress,
    find: "if (isMerged || (isFirst && reading.isOurs))",
    replace: "if (isMerged && isFirst && reading.isOurs)",
  }),
  defect("a watch moves in the midst of its state", ["identity", "reliable", "ends", "fresh"], {
    file: progress,
    find: 'this.phase = isAwaited || isListed ? "listing" : "live";',
    replace: 'this.phase = "live";\n    void isAwaited;\n    void isListed;',
  }),
  defect("a watch ends with a reset", ["ends"], {
    file: session,
    find: "host.endsHere(false);",
    replace: "host.breaksOff();",
  }),
  defect(
    "a hedge's refusal is taken for the watch's own",
    ["ends", "progress", "fresh", "deadline", "tidy"],
    {
      file: session,
      find: "    if (this.first !== undefined) return isCompared && isPassing ? undefined : this.#decline(isPassing);\n",
      replace: "",
    },
  ),
  defect("one backend's refusal ends the watch", ["ends"], {
    file: resume,
    find: 'if (status !== 200) return { kind: "elsewhere", inMs: answer.retryAfterMs ?? 0 };',
    replace: 'if (status !== 200) return { kind: "end" };',
  }),
  defect("no other backend is asked for a version that is too old", ["ends"], {
    file: "watch/session/expired-version.ts",
    find: "if (code === expired && isForgotten)",
    replace: "if (code === expired || isForgotten)",
  }),
  defect("one cache's word that a client's version is too old is believed", ["ends"], {
    file: progress,
    find: " || isHeldBack(event, this.#refused)",
    replace: "",
  }),
  defect(
    "a stream of a bookmark refresh is taken for a successor",
    ["ends", "deadline", "identity", "progress"],
    {
      file: "watch/session/watch-session.ts",
      find: 'if (this.isBlocked || second.reading.bookmark !== "") this.dropSecond();',
      replace: "",
    },
  ),
  defect("there is no PING deadline", ["fresh", "progress", "deadline", "ends", "carried"], {
    file: "upstream/pool/keepalive.ts",
    find: "if (now >= dueAt)",
    replace: "if (now >= dueAt) void notify;\n      else if (now >= dueAt)",
  }),
  defect("a write that was lost is sent again", ["once"], {
    file: "upstream/pool/retry-policy.ts",
    find: "(code === lost && isSafe)",
    replace: "code === lost",
  }),
  defect("an exchange that is over is not forgotten", ["tidy"], {
    file: "proxy/request/active-requests.ts",
    find: "    this.#forget(exchange);\n    if (exchange.queuedBytes",
    replace: "    if (exchange.queuedBytes",
  }),
];

/** Faults in how the proxy handles a silence of all backends, whose likely cause is the proxy's own network (D14). */
const ofSilences: readonly WatchDefect[] = [
  defect("a silence of all backends is taken for their death", ["carried", "ends"], {
    file: "upstream/pool/keepalive.ts",
    find: "if (!isAlone) return Math.max(deadAfterMs, this.#times.deadAfterWhenAllSilentMs);",
    replace: "if (!isAlone) return deadAfterMs;",
  }),
  defect("the first answer after a silence of all convicts the other backends at once", ["carried", "ends"], {
    file: "upstream/pool/keepalive.ts",
    find: "return deadAfterMs + Math.max(0, holeMs);",
    replace: "return deadAfterMs;",
  }),
  defect("attempts that met the silence of all are counted", ["carried"], {
    file: "proxy/request/exchange.ts",
    find: "if (backends.areAllSilent) this.attempts.forget(Number.POSITIVE_INFINITY);",
    replace: "",
  }),
  defect("a watch on a silent stream outlives its client's deadline", ["deadline"], {
    file: session,
    find: "if (stream === undefined || this.#endIfPastDeadline(stream)) return;",
    replace: "if (stream === undefined) return;",
  }),
];

/** Faults in how quiet watches learn of etcd's progress. */
const ofProgress: readonly WatchDefect[] = [
  {
    name: "etcd is not asked for progress",
    scene: "quiet",
    mutations: [
      {
        file: "watch/detectors/bookmark-refresh.ts",
        find: "const version = this.#progress.versionFor(refresh, attempt.backend);",
        replace: 'const version = "";',
      },
    ],
  },
  {
    name: "a list of one resource is taken for all of them",
    scene: "quiet",
    mutations: [
      {
        file: "watch/detectors/progress-requests.ts",
        find: "const key = `${backend} ${resource}`;",
        replace: "const key = backend;",
      },
    ],
  },
  {
    name: "a list from before a backend came back is taken for one from after",
    scene: "quiet",
    mutations: [
      {
        file: "watch/detectors/progress-requests.ts",
        find: "const isNew = !record.isAsked && record.askedAt >= since;",
        replace: "const isNew = !record.isAsked && record.askedAt > 0;",
      },
    ],
  },
];

/**
 * Faults in the comparison of backends, and with caches of custom resources, which an apiserver fills at the first
 * request.
 */
const ofComparing: readonly WatchDefect[] = [
  {
    name: "no cache of a custom resource is filled before it is needed",
    scene: "custom",
    mutations: [
      {
        file: "watch/detectors/sentinels.ts",
        find: "if (ready.length < 2) return;",
        replace: "if (ready.length < 20) return;",
      },
    ],
  },
  {
    name: "watches of a custom resource stay as old as they were when its cache was filled",
    scene: "custom",
    mutations: [
      {
        file: "watch/cache/cache-progress.ts",
        find: "this.#hasForgotten = true;",
        replace: "this.#hasForgotten = false;",
      },
      {
        file: "watch/detectors/sentinels.ts",
        find: "if (post.wasRefused) this.#parts.refresher.warmed",
        replace: "if (!post.isTaken) this.#parts.refresher.warmed",
      },
    ],
  },
  {
    name: "a list that is older than what was shown proves nothing",
    scene: "forks",
    mutations: [
      {
        file: "watch/detectors/forked-histories.ts",
        find: "const isForked = compareVersions(version, seen) < 0;",
        replace: "const isForked = compareVersions(version, seen) < 0 && seen === version;",
      },
    ],
  },
  {
    name: "what clients have seen is forgotten with the backend that showed it",
    scene: "forks",
    mutations: [
      {
        file: "watch/cache/cache-progress.ts",
        find: "this.#seenOfForgotten = this.seen;\n    if (this.caches.delete",
        replace: "if (this.caches.delete",
      },
    ],
  },
  {
    name: "a backend with another history is asked when no other is there",
    scene: "forks",
    mutations: [
      {
        file: "health/backend.ts",
        find: '{ isForked: true, verdict: "dead" }',
        replace: '{ isForked: true, verdict: "suspect" }',
      },
    ],
  },
  {
    name: "a sentinel that is gone is not replaced",
    scene: "forks",
    mutations: [
      {
        file: "watch/detectors/sentinels.ts",
        find: "    post.watch = undefined;\n    return false;",
        replace: "    return true;",
      },
    ],
  },
];

export const watchDefects: readonly WatchDefect[] = [
  ...ofMerging,
  ...ofComparing,
  ...ofBytes,
  ...ofRequests,
  ...ofEndings,
  ...ofSilences,
  ...ofProgress,
];

/** Returns the file that plays the scene of a fault. */
export function entryOf({ scene }: WatchDefect): string {
  if (scene === "merge") return "merge.ts";
  if (scene === "forks") return "watches/forks.ts";
  return scene === "quiet" || scene === "custom" ? "watches/quiet.ts" : "watches/scene.ts";
}
