import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Pause } from "../../../demo/story/pause.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("demo/story/pause");

test("it lasts as long as was said, or until it is woken", async () => {
  const clock = manualClock();
  const pause = new Pause(clock);
  pause.wake();
  const over: string[] = [];
  const waits = async (name: string): Promise<void> => {
    await pause.of(100);
    over.push(name);
  };
  const first = waits("first");
  clock.advance(99);
  assert.equal(over, []);
  clock.advance(1);
  await first;
  const second = waits("second");
  pause.wake();
  await second;
  assert.equal(over, ["first", "second"]);
});

test.run();
