import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Ending, endOf, isDeadline, verdictOn } from "../../../src/watch/session/end-verdict.ts";

const test = suite("watch/session/end-verdict");

const minute = 60_000;

/** A live watch of ten minutes with events, whose timeout is ten minutes away. */
const live: Ending = {
  over: "broken",
  phase: "live",
  start: "exact",
  isResumable: true,
  ageMs: 10 * minute,
  leftMs: 10 * minute,
  isBlocked: false,
  isDraining: false,
  isOurs: false,
  isRepeated: false,
  liveEvents: 5,
  liveMs: 10 * minute,
};
const listing: Partial<Ending> = { phase: "listing", start: "state", isResumable: false };
const untouched: Partial<Ending> = { phase: "opening", start: "state", isResumable: false, liveEvents: 0 };
const fromNow: Partial<Ending> = { phase: "opening", start: "now", isResumable: false, liveEvents: 0 };
const opaque: Partial<Ending> = { phase: "opaque", isResumable: false };
const ended = { over: "ended" } as const;

const word = (ending: Ending): string => {
  const { kind } = verdictOn(ending);
  const inMs = endOf(ending);
  return kind === "end" && inMs > 0 ? `end in ${inMs}` : kind;
};

/** The table of watch.md §5.1, row by row. */
const table: Readonly<Record<string, readonly [Partial<Ending>, string]>> = {
  "nothing was answered: the request is asked again": [{ over: "unanswered", phase: "opening" }, "replay"],

  "the client's deadline has come: the end is the server's": [{ ...ended, leftMs: 0 }, "relay"],
  "an end two seconds before the deadline is the deadline": [{ ...ended, leftMs: 2000 }, "relay"],
  "an end three seconds before it is not": [{ ...ended, leftMs: 3000 }, "resume"],
  "a negative timeout ends at once": [{ ...ended, ...untouched, leftMs: -1000, liveMs: 5 }, "relay"],
  "without a deadline half an hour is the server's": [
    { ...ended, leftMs: undefined, ageMs: 30 * minute },
    "relay",
  ],
  "and less is not": [{ ...ended, leftMs: undefined, ageMs: 29 * minute }, "resume"],
  "nor is it where the server drains": [
    { ...ended, leftMs: undefined, ageMs: 31 * minute, isDraining: true },
    "resume",
  ],
  "nor where we asked it for more": [
    { ...ended, leftMs: undefined, ageMs: 59 * minute, isOurs: true },
    "resume",
  ],
  "but an hour is": [
    { ...ended, leftMs: undefined, ageMs: 60 * minute, isOurs: true, isDraining: true },
    "relay",
  ],

  "an early end of a backend that drains is a move": [{ ...ended, isDraining: true }, "resume"],
  "any number of times": [{ ...ended, isDraining: true, isRepeated: true }, "resume"],
  "an early end without a reason is resumed": [ended, "resume"],
  "once, if nothing comes of it": [{ ...ended, isRepeated: true }, "end"],
  "a watch that its backend ends while its client reads slowly is not resumed (row 19)": [
    { ...ended, isBlocked: true },
    "end",
  ],
  "a slow reader's too while draining": [{ ...ended, isBlocked: true, isDraining: true }, "end"],
  "a watch whose backend ends it early within its initial events is not resumed (row 3)": [
    { ...ended, ...listing, isDraining: true },
    "end",
  ],
  "an early end before anything, while draining, is asked again": [
    { ...ended, ...untouched, isDraining: true },
    "replay",
  ],
  "an early end before anything is the client's to see": [{ ...ended, ...untouched }, "end"],
  "an end of what is not understood is passed on": [{ ...ended, ...opaque }, "relay"],

  "a live watch that breaks goes on elsewhere": [{}, "resume"],
  "a live watch whose stream breaks is resumed, even if its client reads slowly (row 10)": [
    { isBlocked: true },
    "resume",
  ],
  "and when it was repeated": [{ isRepeated: true }, "resume"],
  "a live watch whose stream breaks at its deadline is not resumed (row 16)": [{ leftMs: 0 }, "relay"],
  "an exact watch goes on before its first event": [{ phase: "opening", liveEvents: 0 }, "resume"],
  "a state of which nothing was sent is asked for again": [untouched, "replay"],
  "a watch that has sent some of its initial events is not requested again (row 3)": [listing, "end"],
  "a watch that began at 'now' and has received no event ends (row 4)": [fromNow, "end"],
  "a watch that received an event out of order is not resumed (row 12)": [{ isResumable: false }, "end"],
  "a stream that could not be decoded is reset when its backend is lost (row 20)": [opaque, "reset"],

  "behind an ERROR only the end comes": [{ phase: "ended", isResumable: false }, "relay"],
  "whatever ended it": [{ ...ended, phase: "ended", isResumable: false }, "relay"],

  "the end of a watch without events is delayed until the watch is 1.1 s old (row 18)": [
    { ...fromNow, liveMs: 300 },
    "end in 800",
  ],
  "an end after the initial events waits as long": [
    { isResumable: false, liveEvents: 0, liveMs: 1 },
    "end in 1099",
  ],
  "an end after an event does not": [{ ...listing, liveMs: 3, liveEvents: 1 }, "end"],
};

for (const [title, [more, expected]] of Object.entries(table)) {
  test(title, () => {
    assert.is(word({ ...live, ...more }), expected);
  });
}

test("a client's own deadline is one that it set, two seconds before it comes or later", () => {
  assert.equal([undefined, 3000, 2000, -1].map(isDeadline), [false, false, true, true]);
});

/** All combinations of these values are checked, even those that cannot occur. */
const axes = {
  phase: ["opening", "listing", "live", "opaque", "ended"],
  start: ["exact", "state", "now"],
  over: ["ended", "broken"],
  leftMs: [undefined, -5, 0, 1500, minute],
  ageMs: [10, 40 * minute],
  isBlocked: [false, true],
  isDraining: [false, true],
  isRepeated: [false, true],
  liveEvents: [0, 3],
} satisfies { readonly [Key in keyof Ending]?: readonly Ending[Key][] };

function everyEnding(): Ending[] {
  let endings = [live];
  for (const [key, values] of Object.entries(axes))
    endings = endings.flatMap((ending) => values.map((value) => ({ ...ending, [key]: value })));
  return endings.map((ending) => {
    const { phase, start, ageMs } = ending;
    const isResumable = phase === "live" || (phase === "opening" && start === "exact");
    return { ...ending, liveMs: ageMs, isResumable };
  });
}

test("every ending has a verdict, and none that the watch cannot bear", () => {
  const endings = everyEnding();
  for (const ending of endings) {
    const { kind } = verdictOn(ending);
    const text = JSON.stringify({ ...ending, kind });
    if (kind === "resume") assert.ok(ending.isResumable && (ending.leftMs ?? 1) > 0, text);
    if (kind === "replay") assert.ok(ending.phase === "opening" && ending.start !== "now", text);
    if (kind === "reset") assert.ok(ending.phase === "opaque" && ending.over === "broken", text);
    if (kind === "resume" || kind === "replay") assert.not(ending.over === "ended" && ending.isBlocked, text);
  }
  assert.is(endings.length, 5 * 3 * 2 * 5 * 2 * 16);
});

test.run();
