import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { BodyCopy, copied, heard as hearing } from "../../../src/proxy/observe/lock-tap.ts";

const test = suite("proxy/observe/lock-tap");

function scene() {
  const heard: string[] = [];
  const taken: string[] = [];
  const copy = new BodyCopy((body) => taken.push(body.toString()));
  const note = (word: string): void => void heard.push(word);
  const body = copied(
    {
      headers: () => note("trailers"),
      data: (bytes, start, end, endStream) => {
        note(`${bytes.toString("utf8", start, end)}${endStream ? "." : ""}`);
        bytes.fill("!"); // as whoever forwards it in place may
      },
      reset: (code) => note(`reset ${code}`),
      sent: (count) => note(`sent ${count}`),
    },
    copy,
  );
  const down = hearing(
    {
      sendHeaders: (fields) => note(fields[0]?.value ?? ""),
      sendData: (bytes, start, end) => note(bytes.toString("utf8", start, end)),
      reset: (code) => note(`cut ${code}`),
      grant: (count) => note(`grant ${count}`),
      queuedBytes: 7,
    },
    copy,
  );
  const say = (text: string, end = false): void => body.data(Buffer.from(text), 0, text.length, end);
  const answer = (status: number): void => down.sendHeaders([new Field(":status", String(status))], true);
  return { heard, taken, body, down, say, answer };
}

test("a body goes on as it comes, and a copy is read when it was taken", () => {
  const { heard, taken, say, answer } = scene();
  say("ab");
  say("cd", true);
  answer(103);
  assert.equal(taken, []);
  answer(200);
  assert.equal([heard, taken], [["ab", "cd.", "103", "200"], ["abcd"]]);
});

test("one that was refused, or is too long, is not read", () => {
  const refused = scene();
  refused.say("ab", true);
  refused.answer(409);
  const long = scene();
  long.say("x".repeat(limits.lockBodyBytes));
  long.say("y", true);
  long.answer(200);
  assert.equal([refused.taken, long.taken, long.heard.length], [[], [], 3]);
});

test("everything else is passed on untouched", () => {
  const { heard, body, down } = scene();
  body.headers([], true);
  body.reset(8);
  body.sent(3);
  down.sendHeaders([new Field("x-trailer", "t")], true);
  down.sendData(Buffer.from("abc"), 1, 2, true);
  down.reset(2);
  down.grant(5);
  assert.equal(heard, ["trailers", "reset 8", "sent 3", "t", "b", "cut 2", "grant 5"]);
  assert.is(down.queuedBytes, 7);
});

test.run();
