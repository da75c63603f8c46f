import { suite } from "uvu";
import * as assert from "uvu/assert";
import { failed, jsonReply } from "../../../../src/ops/admin/http/reply.ts";

const test = suite("ops/admin/http/reply");

test("JSON is one line, and a refusal is an object with its reason", () => {
  assert.equal(jsonReply(200, { a: "ä" }), {
    status: 200,
    type: "application/json; charset=utf-8",
    text: '{"a":"ä"}\n',
  });
  assert.is(failed(404, "There is none").text, '{"kind":"Failure","message":"There is none"}\n');
});

test.run();
