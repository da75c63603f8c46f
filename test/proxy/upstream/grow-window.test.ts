import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { growWindow } from "../../../src/proxy/upstream/grow-window.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("proxy/upstream/grow-window");

const far = { rttMs: 100 };

/** The upstream stream of a GET under way, with the session's first window. */
function stream() {
  const path = new PlayedPath(["a"]);
  return path.client().ask("GET", "/api").stream;
}

test("a window that was used up twice is doubled, up to the most that one may have", () => {
  const up = stream();
  const { size } = up.receiveWindow;
  assert.is(growWindow(up, far, 2 * size - 1, false), 2 * size - 1);
  assert.is(growWindow(up, far, 2 * size, false), 0);
  assert.is(up.receiveWindow.size, 2 * size);
  for (let round = 0; round < 10; round += 1) growWindow(up, far, 1e9, false);
  assert.is(up.receiveWindow.size, limits.streamWindowMostBytes);
});

test("a backend next door is allowed no more than comes in a round trip", () => {
  const up = stream();
  const { size } = up.receiveWindow;
  for (const rttMs of [0, 0.3, size / limits.streamBytesPerMs]) {
    assert.is(growWindow(up, { rttMs }, 1e9, false), 0, "it is looked at again after two more windows");
    assert.is(up.receiveWindow.size, size, `${rttMs} ms away`);
  }
  const rttMs = (1.5 * size) / limits.streamBytesPerMs;
  for (let round = 0; round < 3; round += 1) growWindow(up, { rttMs }, 1e9, false);
  assert.is(up.receiveWindow.size, 1.5 * size);
});

test("when memory is short it shrinks, and does not grow", () => {
  const up = stream();
  const { size } = up.receiveWindow;
  assert.is(growWindow(up, far, 1e9, true), 1e9);
  // What was given cannot be taken back: it is not given again.
  up.receiveWindow.use(size);
  up.receiveWindow.grant(size);
  assert.is(up.receiveWindow.size, limits.streamWindowTightBytes);
});

test.run();
