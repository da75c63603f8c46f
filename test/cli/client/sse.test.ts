import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adminLimits } from "../../../src/admin/http/limits.ts";
import { SseReader } from "../../../src/cli/client/sse.ts";

const test = suite("cli/client/sse");
const text =
  ': hello\n\nid: a-1\nevent: upstream_connection.opened\ndata: {"ä":1}\n\nevent: gap\ndata: {}\n\n';

test("events come out the same wherever the bytes are cut", () => {
  const bytes = Buffer.from(text);
  const expected = [
    { id: "a-1", name: "upstream_connection.opened", data: '{"ä":1}' },
    { id: "", name: "gap", data: "{}" },
  ];
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const reader = new SseReader();
    const events = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((chunk) => reader.push(chunk) ?? []);
    assert.equal(events, expected, String(cut));
  }
});

test("half an event waits, and one without an end is given up", () => {
  const reader = new SseReader();
  assert.equal(reader.push(Buffer.from("data: half")), []);
  assert.is(reader.push(Buffer.alloc(adminLimits.eventBacklogBytes, "x")), undefined);
});

test.run();
