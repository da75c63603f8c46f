import { suite } from "uvu";
import * as assert from "uvu/assert";
import { acceptanceOfError } from "../../../src/watch/session/expired-version.ts";

const test = suite("watch/session/expired-version");

test("after a 410 the version is requested from other backends, until no backend is left that may have it (row 17)", () => {
  assert.is(acceptanceOfError(410, false).kind, "elsewhere");
  assert.is(acceptanceOfError(410, true).kind, "end");
  for (const code of [500, 504, 429, 0]) assert.is(acceptanceOfError(code, true).kind, "elsewhere");
  for (const code of [401, 403]) assert.is(acceptanceOfError(code, false).kind, "end");
});

test.run();
