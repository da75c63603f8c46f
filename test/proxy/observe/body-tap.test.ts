import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import type { StreamWriter } from "../../../src/h2/core/stream-writer.ts";
import { BodyTap } from "../../../src/proxy/observe/body-tap.ts";

const test = suite("proxy/observe/body-tap");

test("whatever one is told the other is", () => {
  const told: unknown[] = [];
  const down: StreamWriter = {
    sendHeaders: (fields, end) => told.push([fields[0]?.value, end]),
    sendData: (bytes, start, end, endStream) => told.push([bytes.toString("latin1", start, end), endStream]),
    reset: (code) => told.push(["reset", code]),
    grant: (count) => told.push(["grant", count]),
    closeAfter: () => told.push(["closeAfter"]),
    queuedBytes: 7,
  };
  const side = new BodyTap(down);
  side.sendHeaders([new Field(":status", "200")], false);
  side.sendData(Buffer.from("abc"), 1, 3, true);
  side.reset(8);
  side.grant(3);
  side.closeAfter();
  assert.equal(told, [["200", false], ["bc", true], ["reset", 8], ["grant", 3], ["closeAfter"]]);
  assert.is(side.queuedBytes, 7);
});

test.run();
