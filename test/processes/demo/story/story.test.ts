import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { DemoClient } from "../../../../demo/story/client.ts";
import { Demo } from "../../../../demo/story/demo.ts";
import { Story } from "../../../../demo/story/story.ts";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/story/story");

test("what goes wrong is told, not hidden", async () => {
  const broken = { read: () => Promise.resolve({ status: 0, body: null, problem: "gone" }) };
  const story = new Story({ client: broken as unknown as DemoClient, clock: wallClock, say: () => {} });
  const failure = await story.begin();
  assert.is(failure?.message, "gone");
});

test("every write comes back as an event, and ending it cuts its pause short", async () => {
  const demo = await Demo.start(0);
  if (demo instanceof Failure) throw new Error(demo.message);
  const client = demo.client();
  const said: string[] = [];
  const story = new Story({ client, clock: wallClock, say: (line) => said.push(line) });
  assert.is(await within(20_000, "the story", story.begin()), undefined);
  assert.match(said.at(-1) ?? "", /^ {2}so far {2}5 writes, 5 events, slowest [\d.]+ ms$/);
  const rest = story.goOn();
  story.end();
  await within(1_500, "its end", rest);
  client.close();
  await within(20_000, "the demo's end", demo.stop(AbortSignal.abort()));
});

test.run();
