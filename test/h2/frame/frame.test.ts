import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clientPreface, flag, frameBytes, frameHeaderBytes, frameType } from "../../../src/h2/frame/frame.ts";
import { preface, types } from "../../support/h2-frames.ts";

const test = suite("h2/frame/frame");

test("frame types, flags and sizes are RFC 9113's", () => {
  assert.equal(
    Object.entries(frameType)
      .toSorted((a, b) => a[1] - b[1])
      .map(([name]) => name),
    types,
  );
  assert.equal(flag, { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 });
  assert.equal([frameHeaderBytes, frameBytes], [9, 16_384]);
});

test("the client's preface is the one of §3.4", () => {
  assert.is(clientPreface.toString("latin1"), preface);
});

test.run();
