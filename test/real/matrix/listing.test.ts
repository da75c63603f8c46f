/** A LIST that pauses in the middle continues when `resume` is called, however late. */
import { PassThrough } from "node:stream";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Client } from "../load/client.ts";
import { Listing } from "../load/listing.ts";

const test = suite("real/matrix/listing");
const body = JSON.stringify({ items: [{}, {}] });

/**
 * Returns the stream of the response, and a function that resolves with how the list ended; "waits" if it has not ended
 * within 50 ms.
 */
function listed(): { stream: PassThrough; listing: Listing; fate: () => Promise<string> } {
  const stream = Object.assign(new PassThrough(), { rstCode: 0 });
  const listing = new Listing({ open: () => stream } as unknown as Client, "/", 2);
  const later = (): Promise<string> => new Promise((resolve) => setTimeout(resolve, 50, "waits"));
  return { stream, listing, fate: () => Promise.race([listing.ended, later()]) };
}

function answer(stream: PassThrough): void {
  stream.emit("response", { ":status": 200 });
  stream.write(body.slice(0, 5));
  setTimeout(() => stream.end(body.slice(5)), 5);
}

test("the reader stops after the first piece, and goes on when it is told to", async () => {
  const { stream, listing, fate } = listed();
  answer(stream);
  assert.is(await fate(), "waits");
  listing.resume();
  assert.is(await fate(), "whole");
});

test("a reader that is told to go on before the first piece comes does not stop", async () => {
  const { stream, listing, fate } = listed();
  listing.resume();
  answer(stream);
  assert.is(await fate(), "whole");
});

test.run();
