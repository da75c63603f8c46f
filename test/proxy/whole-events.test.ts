import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../src/h2/buffered.ts";
import { Field } from "../../src/h2/field.ts";
import { WholeEvents } from "../../src/proxy/whole-events.ts";

const test = suite("proxy/whole-events");

const head = (type: string): Field[] => [new Field(":status", "200"), new Field("content-type", type)];
const line = '{"type":"ADDED","object":{}}\n';

test("bytes are let through up to the last whole event, and the rest is held in order", () => {
  const events = WholeEvents.of(head("application/json"), new Buffered(1000));
  const bytes = Buffer.from(line + line.slice(0, 9));
  assert.is(events?.feed(bytes, 0, bytes.length), line.length);
  events?.hold(bytes, line.length, bytes.length);
  bytes.fill(0);
  assert.is(events?.take()?.toString(), line.slice(0, 9));
  assert.is(events?.take(), undefined);
  assert.is(events?.events, 1);
});

test("an event that comes octet by octet is held in one buffer", () => {
  const events = WholeEvents.of(head("application/json"), new Buffered(1000));
  for (const char of line) events?.hold(Buffer.from(char), 0, 1);
  assert.is(events?.take()?.toString(), line);
});

test("a stream that is not what it claimed is let through from then on", () => {
  const events = WholeEvents.of(head("application/json"), new Buffered(1000));
  const bytes = Buffer.from('{\n  "type": "ADDED"\n}');
  assert.is(events?.feed(bytes, 0, bytes.length), bytes.length);
  assert.is(events?.isReadable, false);
});

test("an answer of no readable form is not touched", () => {
  assert.is(WholeEvents.of(head("application/cbor-seq"), new Buffered(1000)), undefined);
});

test.run();
