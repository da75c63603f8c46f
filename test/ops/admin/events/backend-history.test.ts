import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../../src/events/journal.ts";
import { BackendHistory } from "../../../../src/ops/admin/events/backend-history.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { manualClock } from "../../../support/clock.ts";
import { changed } from "../../../support/incidents.ts";

const test = suite("ops/admin/events/backend-history");

test("a backend's last changes are kept, with why, until it is removed", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const history = new BackendHistory(journal);
  assert.equal(history.of("a"), []);
  for (let times = 0; times < adminLimits.backendHistory; times += 1) {
    clock.advance(1);
    journal.write(changed("a", "ready", "suspect"));
    journal.write(changed("a", "suspect", "ready", { reason: "PINGs are answered again" }));
  }
  assert.is(history.of("a").length, adminLimits.backendHistory);
  const { at, to, reason } = history.of("a").at(-1) ?? {};
  assert.equal([at, to, reason], [adminLimits.backendHistory, "ready", "PINGs are answered again"]);
  journal.write({ kind: "backend.removed", backend: "a" });
  assert.equal(history.of("a"), []);
});

test.run();
