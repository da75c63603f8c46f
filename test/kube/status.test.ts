import { suite } from "uvu";
import * as assert from "uvu/assert";
import { statusJson } from "../../src/kube/status.ts";

const test = suite("status");

test("a refusal is a Status on one line, with details only when there are some", () => {
  const head =
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"BadRequest"';
  assert.is(statusJson({ message: "no", reason: "BadRequest", code: 400 }), `${head},"code":400}\n`);
  assert.is(
    statusJson({ message: "no", reason: "BadRequest", details: { retryAfterSeconds: 1 }, code: 400 }),
    `${head},"details":{"retryAfterSeconds":1},"code":400}\n`,
  );
});

test.run();
