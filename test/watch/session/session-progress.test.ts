import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { foreignOrigin, ownOrigin } from "../../../src/kube/api-origin.ts";
import { BackendCounts } from "../../../src/upstream/pool/backend-counts.ts";
import {
  type Fate,
  type Phase,
  Progress,
  type ProgressOptions,
  Reading,
} from "../../../src/watch/session/session-progress.ts";
import { eventFrom, eventOf } from "../../support/watch-events.ts";

const test = suite("watch/session/session-progress");

const exact: ProgressOptions = {
  start: "exact",
  version: "7",
  isRepeating: false,
  origin: ownOrigin,
  isInjected: false,
};
const state: ProgressOptions = {
  start: "state",
  version: "",
  isRepeating: false,
  origin: ownOrigin,
  isInjected: false,
};
const now: ProgressOptions = {
  start: "now",
  version: "",
  isRepeating: false,
  origin: ownOrigin,
  isInjected: false,
};

/**
 * Feeds events, in the notation of watch-events.ts, to one stream that the client requested. Returns the fate of the
 * last event.
 */
function fed(
  options: ProgressOptions,
  words: string,
): { progress: Progress; fate: Fate | undefined; attempt: Reading } {
  const progress = new Progress(options);
  const attempt = new Reading(options.version, false, "a");
  return { progress, attempt, fate: feed(progress, attempt, words) };
}

test("an ADDED newer than all initial events shows that they are over; an older one or an equal one does not", () => {
  for (const [words, phase, version] of [
    ["+9a +10b", "listing", undefined],
    ["+9a +11c", "live", "11"],
  ] as const) {
    const progress = new Progress(state);
    const reading = new Reading("", false, "a");
    reading.initialUpTo = "10";
    feed(progress, reading, words);
    assert.equal([progress.phase, progress.resumeVersion], [phase, version]);
  }
});

test("a bound on the initial events does not replace the bookmark that the client waits for", () => {
  const progress = new Progress({ ...state, awaitsMarker: true });
  const reading = new Reading("", false, "a");
  reading.initialUpTo = "10";
  feed(progress, reading, "+11c");
  assert.is(progress.phase, "listing");
});

function feed(progress: Progress, attempt: Reading, words: string, isMerged = false): Fate | undefined {
  return words
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => progress.take(eventFrom(word), attempt, isMerged, 0))
    .at(-1);
}

type Case = readonly [
  options: ProgressOptions,
  words: string,
  fate: Fate,
  phase: Phase,
  resume: string | undefined,
];

/** The table of watch.md §4, row by row, and its consequences. */
const table: Readonly<Record<string, Case>> = {
  "an exact watch is live with its first event": [exact, "+9", "forward", "live", "9"],
  "an exact watch is live with a bookmark, too": [exact, "=9", "forward", "live", "9"],
  "a state begins with listing": [state, "+9", "forward", "listing", undefined],
  "a state that begins with a change is live": [state, "~9", "forward", "live", "9"],
  "a state that begins with a bookmark is live": [state, "=9$", "forward", "live", "9"],
  "a watch from now has no initial events, so ADDED makes it live": [now, "+9", "forward", "live", "9"],
  "listing goes on with every ADDED, in any order": [state, "+9 +3 +5", "forward", "listing", undefined],
  "a MODIFIED ends the listing": [state, "+9 +3 ~12", "forward", "live", "12"],
  "a DELETED ends the listing": [state, "+9 +3 -12", "forward", "live", "12"],
  "the marker ends the listing": [state, "+9 +3 =12$", "forward", "live", "12"],
  "a newer event moves the cursor": [exact, "+9 ~10", "forward", "live", "10"],
  "versions are compared as numbers": [exact, "+9 ~10 ~99 ~100", "forward", "live", "100"],
  "a bookmark of the cursor's version is repeated to the client": [exact, "~9 =9 =9", "forward", "live", "9"],
  "a newer bookmark moves the cursor": [exact, "~9 =12", "forward", "live", "12"],
  "an older event goes on and leaves the watch where it is (001)": [
    exact,
    "~9 -8",
    "forward",
    "live",
    undefined,
  ],
  "an event of a bookmark's version comes too late": [exact, "=9 ~9", "forward", "live", undefined],
  "an event of the requested version means that the server ignored it": [
    exact,
    "+7",
    "forward",
    "live",
    undefined,
  ],
  "an older bookmark would lead the client back: it is dropped": [exact, "~9 =8", "drop", "live", "9"],
  "once out of order it is never resumable again": [exact, "~9 -8 ~10 =11", "forward", "live", undefined],
  "an event without a version is forwarded, and its position is unknown": [
    exact,
    "~9 ~",
    "forward",
    "live",
    undefined,
  ],
  "a listing of objects without versions stays one": [state, "+", "forward", "listing", undefined],
  "an ERROR goes on, and ends the watch": [exact, "~9 !410", "forward", "ended", undefined],
  "an ERROR as the first answer to the client is its own": [exact, "!500", "forward", "ended", undefined],
  "but for a version that another cache may know": [exact, "!410", "refused", "opening", "7"],
  "of events no other does": [{ ...exact, isRepeating: true }, "!410", "forward", "ended", undefined],
  "nor of a state": [state, "!410", "forward", "ended", undefined],
};

for (const [title, [options, words, fate, phase, resume]] of Object.entries(table)) {
  test(title, () => {
    const seen = fed(options, words);
    assert.equal([seen.fate, seen.progress.phase, seen.progress.resumeVersion], [fate, phase, resume]);
  });
}

test("before anything came, only an exact watch can be resumed", () => {
  const seen = [exact, state, now].map((options) => new Progress(options).resumeVersion);
  assert.equal(seen, ["7", undefined, undefined]);
});

test("an event with an older version is counted, and the cursor does not move back (001, row 12)", () => {
  const { progress } = fed(exact, "~9 -8 -3 =2 ~11");
  assert.equal([progress.cursor, progress.versionRegressions], ["11", 3]);
});

test("bookmarks that the proxy asked for are kept from the client, and still prove the version", () => {
  const { progress, fate } = fed({ ...exact, isInjected: true }, "~9 =12 =12");
  assert.equal([fate, progress.resumeVersion, progress.events], ["drop", "12", 1]);
});

test("the bookmark after the initial events ends them also if only the proxy requested it", () => {
  const { progress, fate } = fed({ ...state, isInjected: true }, "+9 +3 =12$");
  assert.equal([fate, progress.phase, progress.resumeVersion], ["drop", "live", "12"]);
  assert.equal([progress.events, progress.liveEvents, progress.markerAt], [2, 2, -1], "as client-go counts");
  const empty = fed({ ...state, isInjected: true }, "=12$").progress;
  assert.equal([empty.phase, empty.resumeVersion, empty.events], ["live", "12", 0]);
});

test("a bookmark that only the proxy requested does not go to the client, whichever server assigns the versions", () => {
  const origin = { isForeign: true };
  for (const words of ["+9 +3 =12$", "+9 =", "~9 =7"]) {
    const { fate } = fed({ ...state, isInjected: true, origin }, words);
    assert.is(fate, "drop", words);
  }
  // Whether another server serves the API becomes known only after the response.
  const { progress } = fed({ ...state, isInjected: true, origin }, "+9 +3 =12$");
  assert.equal([progress.phase, progress.resumeVersion], ["live", undefined]);
  origin.isForeign = false;
  assert.is(progress.resumeVersion, "12");
});

test("an ERROR in place of initial events may answer the proxy's bookmarks, so the client does not get it", () => {
  assert.is(fed({ ...state, isInjected: true }, "!500").fate, "refused");
  assert.is(fed({ ...state, isInjected: true }, "+9 !500").fate, "forward");
  assert.is(fed(state, "!500").fate, "forward");
  assert.is(fed({ ...exact, isInjected: true }, "!500").fate, "forward");
});

test("of another server's events nothing is believed, and all go on", () => {
  for (const words of ["+9 +3", "~9 ~8 =7 ~9", "~5 ~"]) {
    const { progress, fate } = fed({ ...exact, origin: foreignOrigin }, words);
    assert.equal(
      [fate, progress.phase, progress.resumeVersion, progress.versionRegressions],
      ["forward", "live", undefined, 0],
    );
  }
  assert.is(new Progress({ ...exact, origin: foreignOrigin }).resumeVersion, undefined);
});

test("what is not understood is opaque, and stays so", () => {
  const { progress } = fed(exact, "~9");
  progress.lose();
  assert.equal([progress.phase, progress.resumeVersion], ["opaque", undefined]);
  const over = fed(exact, "!500").progress;
  over.lose();
  assert.is(over.phase, "ended");
});

test("the count of events starts anew behind the initial ones, as client-go's does", () => {
  const { progress } = fed(state, "+5 +3 =9$");
  assert.equal([progress.events, progress.liveEvents], [3, 0]);
  progress.take(eventFrom("~10"), new Reading("", false, "a"), false, 50);
  assert.equal([progress.events, progress.liveEvents], [4, 1]);
});

test("the times of the last event, bookmark and change are kept, except those of bookmarks that are not its own", () => {
  const { progress } = fed(state, "");
  const times = (): readonly number[] => [
    progress.lastEventAt,
    progress.lastChangeAt,
    progress.lastBookmarkAt,
  ];
  progress.arrived("ERROR", 10, true);
  assert.equal(times(), [-1, -1, -1]);
  progress.arrived("ADDED", 20, true);
  progress.arrived("BOOKMARK", 30, true);
  assert.equal(times(), [30, 20, 30]);
  progress.arrived("BOOKMARK", 40, false);
  assert.equal(times(), [40, 20, 30]);
  progress.promoted();
  assert.equal(times(), [40, 20, -1]);
});

// --- the resource `events`, of which one version may have several events (watch.md §5.3) ---

const events: ProgressOptions = { ...exact, isRepeating: true };

const repeats: Readonly<
  Record<string, readonly [options: ProgressOptions, words: string, resume: string | undefined]>
> = {
  "a fresh watch is resumed where it was asked from": [events, "", "7"],
  "the open version is asked for again": [events, "+9a", "7"],
  "so is a batch": [events, "+9a -12a -12b -12c", "9"],
  "a bookmark proves a version complete": [events, "+9a =9", "9"],
  "and the version below the next event is its own": [events, "+9a =10 +12a", "10"],
  "with no version below the first it cannot be resumed": [
    { ...state, isRepeating: true },
    "+5a ~9a",
    undefined,
  ],
  "until there is a second": [{ ...state, isRepeating: true }, "+5a ~9a ~11a", "9"],
  "a stream that shows two events of one version is one of these from then on": [exact, "~9 -10 -10", "9"],
};

for (const [title, [options, words, resume]] of Object.entries(repeats)) {
  test(`where versions repeat: ${title}`, () => {
    assert.is(fed(options, words).progress.resumeVersion, resume);
  });
}

test("when events of one version are requested again, the delivered ones are dropped and the others are forwarded (row 5)", () => {
  const { progress } = fed(events, "+9a -12a -12b");
  const again = new Reading("9", true, "a");
  const fates = ["-12a", "-12b", "-12c", "-12d", "+13a"].map((word) => feed(progress, again, word));
  assert.equal(fates, ["drop", "drop", "forward", "forward", "forward"]);
  assert.is(progress.resumeVersion, "12");
});

test("a batch that is not the one delivered is no answer", () => {
  for (const [words, at] of [
    ["-12b -12a", 1],
    ["-12a -12c", 1],
    ["-12a +13a", 1],
    ["+13a", 0],
    ["-12a =13", 1],
  ] as const) {
    const { progress } = fed(events, "+9a -12a -12b");
    const again = new Reading("9", true, "a");
    const fates = words.split(" ").map((word) => feed(progress, again, word));
    assert.is(fates[at], "broken", words);
  }
});

// --- a stream that the proxy requested (§5.2) ---

test("a resumed stream continues behind its version", () => {
  const { progress } = fed(exact, "~9");
  assert.is(feed(progress, new Reading("9", true, "a"), "~10 ~11"), "forward");
  assert.equal([progress.cursor, progress.resumeVersion], ["11", "11"]);
});

test("an upstream stream whose first event is not above the requested version is broken (row 14)", () => {
  for (const word of ["+9", "+3", "-8"]) {
    const { progress } = fed(exact, "~9");
    assert.is(feed(progress, new Reading("9", true, "a"), word), "broken", word);
    assert.is(progress.resumeVersion, "9");
  }
});

test("an ERROR as the first event of a resumed stream refuses the resume and is not forwarded (row 17, 24)", () => {
  const { progress } = fed(exact, "~9");
  assert.is(feed(progress, new Reading("9", true, "a"), "!410"), "refused");
  assert.equal([progress.phase, progress.resumeVersion], ["live", "9"]);
});

test("an ERROR later on is forwarded to the client, as from a single stream", () => {
  const { progress } = fed(exact, "~9");
  assert.is(feed(progress, new Reading("9", true, "a"), "~10 !500"), "forward");
  assert.is(progress.phase, "ended");
});

// --- two merged streams (§5.6) ---

test("of two streams the first to advance wins, and each event goes on once", () => {
  const { progress, attempt } = fed(exact, "~9");
  const hedge = new Reading("9", true, "a");
  const order: readonly (readonly [Reading, string, Fate])[] = [
    [hedge, "~10", "forward"],
    [hedge, "=11", "forward"],
    [attempt, "~10", "drop"],
    [attempt, "=11", "drop"],
    [attempt, "~12", "forward"],
    [hedge, "~12", "drop"],
    [hedge, "~14", "forward"],
  ];
  for (const [reading, word, fate] of order) assert.is(feed(progress, reading, word, true), fate, word);
  assert.is(progress.cursor, "14");
  assert.is(feed(progress, attempt, "~14 =15"), "forward", "and either can go on alone");
});

test("a stream that passes what the other delivered without delivering it has a gap", () => {
  const { progress, attempt } = fed(exact, "~9");
  const hedge = new Reading("9", true, "a");
  feed(progress, attempt, "~10", true);
  assert.is(feed(progress, hedge, "~12", true), "broken");
  const other = new Reading("9", true, "a");
  assert.is(feed(progress, other, "=12", true), "broken");
  assert.is(feed(progress, attempt, "~12", true), "forward");
});

test("a batch that comes on two streams goes on once, whichever is ahead", () => {
  const { progress, attempt } = fed(events, "+9a");
  const hedge = new Reading("7", true, "a");
  assert.is(feed(progress, hedge, "+9a", true), "drop");
  const order: readonly (readonly [Reading, string, Fate])[] = [
    [hedge, "-12a", "forward"],
    [attempt, "-12a", "drop"],
    [attempt, "-12b", "forward"],
    [attempt, "-12c", "forward"],
    [hedge, "-12b", "drop"],
    [hedge, "-12c", "drop"],
    [hedge, "-12d", "forward"],
  ];
  for (const [reading, word, fate] of order) assert.is(feed(progress, reading, word, true), fate, word);
});

test("of two streams one that is out of order, without a version or in error is closed", () => {
  for (const word of ["~8", "~", "!500"]) {
    const { progress } = fed(exact, "~9");
    const hedge = new Reading("9", true, "a");
    feed(progress, hedge, "~10", true);
    const fate = progress.take(word === "~" ? eventOf("MODIFIED") : eventFrom(word), hedge, true, 0);
    assert.is(fate, word === "!500" ? "refused" : "broken", word);
    assert.is(progress.resumeVersion, "10");
  }
});

/**
 * Returns the events that match one watch, in order, with bookmarks between them. Some versions have several events.
 */
function historyOf(gaps: readonly number[], hasBatches: boolean): string[] {
  let version = 7;
  return gaps.flatMap((gap, index) => {
    version += gap + 1;
    const batch = hasBatches && gap === 0 ? ["a", "b", "c"] : ["a"];
    const bookmark = index % 3 === 2 ? [`=${version}`] : [];
    return [...batch.map((name) => `-${version}${name}`), ...bookmark];
  });
}

/** Returns a backend's response to a watch from `version`: the events and bookmarks with a newer version. */
function answerTo(version: string, history: readonly string[]): string[] {
  return history.filter((word) => Number.parseInt(word.slice(1), 10) > Number(version));
}

test("cut anywhere, any number of times, with hedges or without: every event arrives once and in order", () => {
  const gap = fc.integer({ min: 0, max: 3 });
  const step = fc.constantFrom("first", "second", "cut", "hedge", "clear");
  fc.assert(
    fc.property(
      fc.array(gap, { maxLength: 12 }),
      fc.boolean(),
      fc.array(step, { maxLength: 80 }),
      (gaps, hasBatches, steps) => {
        const history = historyOf(gaps, hasBatches);
        const progress = new Progress(hasBatches ? events : exact);
        const seen: string[] = [];
        const attemptOf = (version: string, isOurs: boolean) => ({
          reading: new Reading(version, isOurs, "a"),
          words: answerTo(version, history),
        });
        let attempts = [attemptOf("7", false)];
        const resumed = () => attemptOf(progress.resumeVersion ?? "", true);
        const read = (index: number): void => {
          const attempt = attempts[index];
          const word = attempt?.words.shift();
          if (attempt === undefined || word === undefined) return;
          const fate = progress.take(eventFrom(word), attempt.reading, attempts.length > 1, 0);
          assert.ok(fate === "forward" || fate === "drop", `${fate}: ${word}`);
          if (fate === "forward" && !word.startsWith("=")) seen.push(word);
        };
        for (const name of steps) {
          if (name === "first" || name === "second") read(name === "first" ? 0 : 1);
          else if (name === "cut") attempts = attempts.length > 1 ? attempts.slice(1) : [resumed()];
          else if (name === "hedge" && attempts.length === 1) attempts.push(resumed());
          else if (name === "clear") attempts = attempts.slice(0, 1);
        }
        while (attempts.some(({ words }) => words.length > 0))
          for (const index of attempts.keys()) read(index);
        assert.equal(
          seen,
          history.filter((word) => !word.startsWith("=")),
        );
      },
    ),
    { numRuns: 5000 },
  );
});

test("where a marker is awaited nothing else ends the initial events", () => {
  const { progress, attempt } = fed({ ...state, awaitsMarker: true }, "+3a ~12b -13c =14");
  assert.equal([progress.phase, progress.resumeVersion], ["listing", undefined]);
  assert.is(feed(progress, attempt, "=15$"), "forward");
  assert.equal([progress.phase, progress.resumeVersion], ["live", "15"]);
});

test("counted among others: what it had before counts too, and its phase only until it is counted out", () => {
  const tally = {
    events: new BackendCounts<"event">(),
    versionRegressions: 2,
    bytes: 0,
    phases: { opening: 1, listing: 0, live: 3, opaque: 0, ended: 0 },
  };
  const counted = (): number | undefined => tally.events.all[0]?.count;
  tally.events.of("a", "event").add(1);
  const { progress, attempt } = fed(state, "+5a +6b");
  progress.countIn(tally, "a");
  assert.equal([counted(), tally.phases.listing], [3, 1]);
  feed(progress, attempt, "~9a ~8b");
  assert.equal([counted(), tally.versionRegressions], [1 + progress.events, 2 + progress.versionRegressions]);
  assert.equal(tally.phases, { opening: 1, listing: 0, live: 4, opaque: 0, ended: 0 });
  progress.countOut();
  progress.lose();
  progress.countOut();
  assert.equal(tally.phases, { opening: 1, listing: 0, live: 3, opaque: 0, ended: 0 });
});

test.run();
