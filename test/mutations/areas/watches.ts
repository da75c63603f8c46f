/**
 * Faults in watches that a unit test must detect. test/simulation/watch-defects.ts has those that the simulation must
 * detect.
 */

import { type Defect, defect } from "../defect.ts";

export const watches: readonly Defect[] = [
  defect(
    "a watch may be compressed",
    {
      file: "proxy/request/handler.ts",
      find: "asked === undefined ? fields : uncompressed(fields);",
      replace: "fields;",
    },
    ["proxy/request/serve", "a watch is requested without compression"],
  ),
  defect(
    "an event without end is held",
    {
      file: "watch/codec/json-events.ts",
      find: "return this.#lineLength <= eventLimits.eventBytes;",
      replace: "return this.#lineLength > 0;",
    },
    ["watch/codec/json-events", "a line without end is given up"],
  ),
  defect(
    "watches are refreshed without asking etcd for progress",
    {
      file: "watch/detectors/bookmark-refresh.ts",
      find: "const version = this.#progress.versionFor(refresh, attempt.backend);",
      replace: 'const version = "";',
    },
    [
      "watch/detectors/bookmark-refresh",
      "a watch elsewhere is asked for once more where it is, and can go there then",
    ],
  ),
  defect(
    "an old bookmark counts as news",
    {
      file: "watch/detectors/bookmark-refresh.ts",
      find: '(version === "" ? lastEventAt : lastChangeAt) >= at',
      replace: "lastEventAt >= at",
    },
    [
      "watch/detectors/progress-requests",
      "a bookmark that came since, from before etcd's version, proves nothing",
    ],
  ),
  defect(
    "a list from before the return proves that the cache follows",
    {
      file: "watch/detectors/progress-requests.ts",
      find: "const isNew = !record.isAsked && record.askedAt >= since;",
      replace: "const isNew = !record.isAsked && record.askedAt > 0;",
    },
    ["watch/detectors/progress-requests", "one a second at most for each backend and resource"],
  ),
  defect(
    "one client that may not list speaks for all",
    {
      file: "watch/detectors/progress-requests.ts",
      find: "tries < watchLimits.progressTries &&",
      replace: "tries === 0 &&",
    },
    ["watch/detectors/progress-requests", "a client that may not list: another's is tried"],
  ),
  defect(
    "a list with a version is an exact read",
    { file: "kube/resume-request.ts", find: ', "resourceVersionMatch=NotOlderThan"];', replace: "];" },
    ["kube/resume-request", "the list of what a watch watches"],
  ),
  defect(
    "clients that may not list are never tried again",
    {
      file: "watch/detectors/progress-requests.ts",
      find: "if (!isNew) record.tries = 0;",
      replace: "",
    },
    [
      "watch/detectors/progress-requests",
      "clients that may not list are tried anew each time that a backend comes back",
    ],
  ),
  defect(
    "a cache is looked at before etcd had the time to notify it",
    {
      file: "watch/detectors/progress-requests.ts",
      find: "if (leftMs > 0) return this.#checkIn(record, leftMs);",
      replace: "void leftMs;",
    },
    ["watch/detectors/progress-requests", "a newer list gives etcd the same time again"],
  ),
  defect(
    "caches that etcd does not notify are not told",
    {
      file: "watch/detectors/progress-requests.ts",
      find: "if (!record.isMissing) this.#reportDelay(record, cached);",
      replace: "",
    },
    ["watch/detectors/progress-requests", "a cache that has not come to etcd's version in twelve seconds"],
  ),
  defect(
    "versions are compared as texts",
    {
      file: "kube/resource-version.ts",
      find: "if (a.length !== b.length) return a.length - b.length;",
      replace: "",
    },
    ["kube/resource-version", "versions are compared as numbers of any size"],
  ),
  defect(
    "a watch goes on one version too late",
    {
      file: "watch/session/session-progress.ts",
      find: 'return version === "" ? undefined : version;',
      replace: 'return version === "" ? undefined : String(Number(version) + 1);',
    },
    ["watch/session/session-progress", "an exact watch is live with its first event"],
  ),
  defect(
    "the cursor moves back",
    {
      file: "watch/session/session-progress.ts",
      find: "if (ahead > 0) return this.#advance(event, reading);",
      replace: "if (ahead !== 0) return this.#advance(event, reading);",
    },
    ["watch/session/session-progress", "of two streams the first to advance wins"],
  ),
  defect(
    "the whole state is asked for again",
    { file: "kube/resume-request.ts", find: '  "sendInitialEvents",\n', replace: "" },
    [
      "kube/resume-request",
      "a resumed request repeats the client's query byte for byte, except version, timeout and initial events",
    ],
  ),
  defect(
    "the client's deadline is forgotten",
    { file: "kube/resume-request.ts", find: "    `timeoutSeconds=${seconds}`,\n", replace: "" },
    [
      "kube/resume-request",
      "a resumed watch ends at the client's timeout, or after an hour if the client set none",
    ],
  ),
  defect(
    "a second attempt's end is taken for the client's deadline",
    {
      file: "watch/session/watch-session.ts",
      find: 'if (over === "ended" && isDeadline(this.#times.leftMs)) this',
      replace: 'if (over === "ended") this',
    },
    ["watch/detectors/bookmark-refresh", "no end of a watch that is older than half an hour"],
  ),
  defect(
    "a watch on a silent attempt outlives its client's deadline",
    {
      file: "watch/session/watch-session.ts",
      find: "#isPastDeadline || !this.progress.isReadable) return false;",
      replace: "#isPastDeadline || this.progress.isReadable) return false;",
    },
    ["flows/watching-patience", "all silent ends at its client's own deadline"],
  ),
  defect(
    "a watch that waits for a cache to be filled outlives its client's deadline",
    {
      file: "watch/session/watch-session.ts",
      find: "    if (this.#isPastDeadline) return this.#endAtDeadline();\n",
      replace: "",
    },
    ["flows/watching-patience", "waits for a cache that is being filled ends at its client's own deadline"],
  ),
  defect(
    "a restart is taken for the server's timeout",
    { file: "watch/session/end-verdict.ts", find: "(isOurs || isDraining ?", replace: "(isOurs ?" },
    ["watch/session/watch-session", "a restart is not the server's timeout"],
  ),
  defect(
    "an early end of a request by the proxy is taken for the server's timeout",
    { file: "watch/session/end-verdict.ts", find: "(isOurs || isDraining ?", replace: "(isDraining ?" },
    ["watch/session/watch-session", "a restart is not the server's timeout"],
  ),
  defect(
    "a bookmark that is taken out takes a Table's columns with it",
    { file: "watch/session/watch-context.ts", find: "/cbor|table/i", replace: "/cbor/i" },
    ["flows/watching-bytes", "a Table is asked for without them"],
  ),
  defect(
    "one backend that does not serve a resource is taken for all",
    {
      file: "watch/migration/target-picker.ts",
      find: "views.every(({ name }) => notServing.includes(name))",
      replace: "views.some(({ name }) => notServing.includes(name))",
    },
    ["flows/watching-patience", "one backend that does not serve it yet is not all of them"],
  ),
  defect(
    "a resource that no backend serves any more counts as a move that failed",
    {
      file: "watch/session/watch-session.ts",
      find: "return this.migrations.targets.isServedNowhere(this.#search.notServing);",
      replace: "return false;",
    },
    ["flows/watching-patience", "a resource that no backend serves any more ends at once"],
  ),
  defect(
    "clients behind one address are one",
    {
      file: "proxy/observe/stale-read-guard.ts",
      find: "if (before?.isOpen === true)",
      replace: "if (before === undefined)",
    },
    ["proxy/observe/stale-read-guard", "clients behind one address are told apart"],
  ),
  defect(
    "a later page is an answer from the past",
    {
      file: "proxy/observe/stale-read-guard.ts",
      find: 'if ((firstValue(query, "continue") ?? "") !== "") return true;',
      replace: "",
    },
    ["proxy/observe/stale-read-guard", "an answer from the past that was asked for is none"],
  ),
  defect(
    "a floor cuts a list to a page",
    {
      file: "kube/resume-request.ts",
      find: 'new Set(["resourceVersion", "resourceVersionMatch", "limit"])',
      replace: 'new Set(["resourceVersion", "resourceVersionMatch"])',
    },
    ["proxy/observe/stale-read-guard", "enforced, any state means none older"],
  ),
  defect(
    "an API whose kind is not known is resumed",
    {
      file: "kube/api-origin.ts",
      find: "const origin = { ...known };",
      replace: "const origin = { ...known, isForeign: known.isForeign && known.isKnown };",
    },
    ["watch/detectors/origin-checks", "until then its watch is another server's"],
  ),
  defect(
    "any OpenAPI is a CRD's",
    { file: "kube/api-origin.ts", find: "if (title === customTitle)", replace: "if (title !== undefined)" },
    ["watch/detectors/origin-checks", "another server's watch stays what it is"],
  ),
  defect(
    "an answer that two apiservers wrote is not noticed",
    {
      file: "watch/detectors/origin-checks.ts",
      find: 'return count("audit-id") > 1 ||',
      replace: "return",
    },
    ["watch/detectors/origin-checks", "an API that was a CRD's is another server's"],
  ),
  defect(
    "a CRD that is found is followed from its next watch on only",
    {
      file: "watch/session/watch-session.ts",
      find: "migrations.watches.add(this, asked);\n    if (this.first !== undefined) migrations.follow",
      replace: "if (this.first !== undefined) migrations.follow",
    },
    ["watch/detectors/origin-checks", "a CRD's watch goes on elsewhere from then on"],
  ),
  defect(
    "a CRD's OpenAPI that is not there yet is never asked for again",
    { file: "watch/detectors/origin-checks.ts", find: "new Set([0, 404, ", replace: "new Set([0, " },
    ["watch/detectors/origin-checks", "a CRD's OpenAPI that is not there yet is asked for again"],
  ),
  defect(
    "what another server's versions say is believed",
    {
      file: "watch/session/session-progress.ts",
      find: "    this.versionRegressions = versionRegressions;\n",
      replace: "",
    },
    ["watch/detectors/origin-checks", "events out of order before it is known"],
  ),
  defect(
    "a compressed answer is read as events",
    { file: "watch/codec/framing.ts", find: 'if (contentEncoding !== "") return undefined;', replace: "" },
    ["watch/codec/framing", "a compressed answer is opaque"],
  ),
  defect(
    "two streams have the same decoder at once",
    { file: "watch/codec/framing.ts", find: "    this.#idle = undefined;\n", replace: "" },
    ["watch/codec/framing", "a decoder that was given back is lent again"],
  ),
  defect(
    "a sentinel's second attempt goes on to the client before the first has shown it",
    {
      file: "watch/session/watch-session.ts",
      find: 'else if (!from.isTooFarAhead) return "hold";',
      replace: "else return progress.take(event, from.reading, true, now);",
    },
    ["watch/detectors/sentinels", "what both show goes on once"],
  ),
  defect(
    "what a sentinel's second attempt has shown is lost with the first",
    {
      file: "watch/session/watch-session.ts",
      find: "return this.first === undefined || this.#releaseAhead(this.first);",
      replace: "while (this.first?.shiftAhead() !== undefined);\n    return true;",
    },
    ["watch/detectors/sentinels", "when the first is lost the second is the watch at once"],
  ),
  defect(
    "a false alarm takes the sentinel away",
    {
      file: "watch/session/watch-session.ts",
      find: "if (!this.isPosted) return this.dropSecond();",
      replace: "if (this.isPosted) return this.dropSecond();",
    },
    ["watch/detectors/sentinels", "a false alarm leaves the sentinel where it is"],
  ),
  defect(
    "any watch is as good a sentinel as one that sees all of the resource",
    {
      file: "watch/detectors/sentinels.ts",
      find: "return whole.has(present) ? undefined : this.#firstOf(whole, post, ready);",
      replace: "return undefined;",
    },
    ["watch/detectors/sentinels", "a watch that sees all of it is preferred"],
  ),
  defect(
    "a cache that is being filled is tried three times",
    {
      file: "watch/session/watch-session.ts",
      find: "else if (this.first === undefined) this.#search.uncount();",
      replace: "",
    },
    ["flows/watching-patience", "a cache that is being filled is waited for"],
  ),
  defect(
    "two histories are taken for one",
    {
      file: "watch/session/watch-session.ts",
      find: "if (!isUnlike) return;",
      replace: "if (isUnlike || !isUnlike) return;",
    },
    ["watch/detectors/sentinels", "of two histories the first goes on: the first is beyond"],
  ),
  defect(
    "what clients have seen is forgotten with the backend that showed it",
    {
      file: "watch/cache/cache-progress.ts",
      find: "this.#seenOfForgotten = this.seen;\n    if (this.caches.delete",
      replace: "if (this.caches.delete",
    },
    [
      "watch/cache/cache-progress",
      "what clients have seen is remembered when the backend that showed it is forgotten",
    ],
  ),
  defect(
    "a cache that comes on does not lag, however far behind it is",
    {
      file: "watch/cache/cache-progress.ts",
      find: "isStill ? cache.stillSince : cache.watchedSince",
      replace: "cache.stillSince",
    },
    ["watch/cache/cache-progress", "one that comes on and still lacks an event for so long lags"],
  ),
  defect(
    "a first watch lags from the moment it opens",
    {
      file: "watch/cache/cache-progress.ts",
      find: "isStill ? cache.stillSince : cache.watchedSince",
      replace: "isStill ? cache.stillSince : 0",
    },
    ["watch/cache/cache-progress", "a first watch has as long to show it"],
  ),
  defect(
    "a watch that is parked while others are queued again waits for ever",
    {
      file: "watch/migration/migrations.ts",
      find: "if (this.#isTryingAgain || this.#parked.size === 0) return;",
      replace: "if (this.#isTryingAgain || this.#parked.size !== 1) return;",
    },
    ["watch/migration/migrations", "on a busy machine, where each slice is short"],
  ),
  defect(
    "a walk over all watches takes one loop turn",
    { file: "base/slices.ts", find: "count < sliceLimits.sliceEntries", replace: "count >= 0" },
    ["base/slices", "no turn visits more than its part"],
  ),
  defect(
    "a slice has no end in time",
    {
      file: "base/slices.ts",
      find: "if (clock.now() >= until) return false;",
      replace: "void until;",
    },
    ["base/slices", "a slice ends when its time is over"],
  ),
  defect(
    "a visit that fails ends the walk",
    {
      file: "base/slices.ts",
      find: "if (!isLast) clock.soon(slice);\n      isOver = isLast;",
      replace: "isOver = isLast;",
    },
    ["base/slices", "a visit that fails costs its entry only"],
  ),
  defect(
    "the hung-watch detector looks at all watches in one turn",
    {
      file: "watch/detectors/hung-watch.ts",
      find: "this.#endWalk = inSlices(clock, exchanges.live, look);",
      replace: "for (const one of exchanges.live) look(one);\n      void inSlices;",
    },
    ["watch/detectors/hung-watch", "so many in one loop turn"],
  ),
  defect(
    "the hung-watch detector looks at watches that are over",
    {
      file: "watch/detectors/hung-watch.ts",
      find: "watch === undefined || isEnded",
      replace: "watch === undefined",
    },
    ["watch/detectors/hung-watch", "one that is over is not"],
  ),
  defect(
    "watches that may be too old are looked through in one turn",
    {
      file: "watch/detectors/bookmark-refresh.ts",
      find: "inSlices(this.#parts.clock, this.#old, refresh, done);",
      replace: "for (const one of this.#old) if (refresh(one) === stop) break;\n    done();",
    },
    ["watch/detectors/bookmark-refresh", "no loop turn is for all of them"],
  ),
  defect(
    "a watch that has ended stays in its phase",
    {
      file: "proxy/request/active-requests.ts",
      find: "exchange.watch?.progress.countOut();",
      replace: "void exchange.watching;",
    },
    ["proxy/request/active-requests", "a scrape looks at none of them"],
  ),
  defect(
    "events before a watch is counted are lost",
    {
      file: "watch/session/session-progress.ts",
      find: ".add(this.events);",
      replace: ".add(0);",
    },
    ["watch/session/session-progress", "counted among others"],
  ),
];
