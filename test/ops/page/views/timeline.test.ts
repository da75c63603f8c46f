import { suite } from "uvu";
import * as assert from "uvu/assert";
import { entriesOf } from "../../../../src/ops/page/views/timeline.js";
import { backend, changeAt, incident, timeAt } from "../../../support/page.ts";

const test = suite("ops/page/views/timeline");

test("verdicts and incidents stand together, the latest first", () => {
  const cp2 = backend({
    name: "cp-2",
    history: [changeAt(9_000, "ready", "suspect"), changeAt(7_000, "suspect", "dead")],
  });
  const one = incident({ detectedAt: timeAt(6_900), endedAt: timeAt(2_000), resolution: "it is ready" });
  assert.equal(
    entriesOf([cp2], [one]).map(({ state, text }) => `${state} ${text}`),
    [
      "ok #42 backend-blackholed is over: it is ready",
      "critical #42 backend-blackholed: cp-2: dead; 131 watches moved, 3 tunnels ended",
      "dead cp-2 dead: for a reason",
      "suspect cp-2 suspect: for a reason",
    ],
  );
});

test("of one thing it is told as of one", () => {
  const impact = { watchesMoved: 4, slowestMoveMs: 702, watchesEnded: 0, tunnelsEnded: 1, requestsFailed: 1 };
  const [told] = entriesOf([], [incident({ impact })]);
  assert.match(told?.text ?? "", "4 watches moved, 1 tunnel ended, 1 request failed");
});

test("only what a reader can read is kept", () => {
  const history = Array.from({ length: 300 }, (_, at) => changeAt(at * 1_000, "ready", "suspect"));
  assert.is(entriesOf([backend({ history })], []).length, 60);
});

test.run();
