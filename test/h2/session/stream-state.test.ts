import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  next,
  type StreamInput,
  type StreamState,
  streamInputs,
  streamStates,
} from "../../../src/h2/session/stream-state.ts";

const test = suite("h2/session/stream-state");

/** The state diagram of RFC 9113 §5.1, written again by hand. `.` means forbidden. */
const picture: Record<StreamState, Record<StreamInput, StreamState | ".">> = {
  idle: row("open open . . . . ."),
  open: row("open open open open half-closed-local half-closed-remote closed"),
  "half-closed-local": row(". half-closed-local . half-closed-local . closed closed"),
  "half-closed-remote": row("half-closed-remote . half-closed-remote . closed . closed"),
  closed: row(". . . . . . closed"),
};

function row(text: string): Record<StreamInput, StreamState | "."> {
  const cells = text.split(" ");
  const entries = streamInputs.map((input, index) => [input, cells[index]]);
  return Object.fromEntries(entries) as Record<StreamInput, StreamState | ".">;
}

for (const state of streamStates) {
  for (const input of streamInputs) {
    const expected = picture[state][input];
    test(`${state}: ${input} ${expected === "." ? "is forbidden" : `leads to ${expected}`}`, () => {
      assert.is(next(state, input) ?? ".", expected);
    });
  }
}

test("a closed stream stays closed whatever comes", () => {
  for (const input of streamInputs) assert.ok((next("closed", input) ?? "closed") === "closed");
});

test.run();
