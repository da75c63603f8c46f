import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { eventLimits, isOpaque, needsMore } from "../../../src/watch/codec/event.ts";
import { JsonEvents } from "../../../src/watch/codec/json-events.ts";
import { cut, everyCut, jsonEvent, relayed, sizes } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/json-events");

const pod = { kind: "Pod", apiVersion: "v1", metadata: { name: "web-0", resourceVersion: "7" } };
const types = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"];
const stream = Buffer.concat(types.map((type) => jsonEvent(type, pod)));

test("whole events go on and the rest is held, wherever the bytes are cut", () => {
  const half = jsonEvent("ADDED", pod).subarray(0, 60);
  for (const chunks of everyCut(Buffer.concat([stream, half]))) {
    const decoder = new JsonEvents(false);
    const { forwarded, held, isOpaque: gaveUp } = relayed(decoder, chunks);
    assert.is(gaveUp, false);
    assert.equal(forwarded, stream);
    assert.equal(held, half);
    assert.is(decoder.events, types.length);
    assert.is(decoder.isWhole, false);
  }
});

test("a fresh stream, and one that ended with an event, are whole", () => {
  const decoder = new JsonEvents(false);
  assert.is(decoder.isWhole, true);
  const first = jsonEvent("ADDED", pod).length;
  assert.is(decoder.next(stream, 0, stream.length), first);
  assert.is(decoder.isWhole, true);
  assert.is(decoder.next(stream, 9, 9), needsMore, "an empty DATA frame");
  assert.is(decoder.isWhole, true);
  assert.is(decoder.next(stream, first, first + 1), needsMore);
  assert.is(decoder.isWhole, false);
});

test("fake events inside strings end nothing", () => {
  const note = 'x"}\n{"type":"DELETED","object":{}}\n';
  const event = jsonEvent("ADDED", { note, type: "DELETED", object: {} });
  for (const chunks of everyCut(event)) assert.equal(relayed(new JsonEvents(false), chunks).forwarded, event);
});

test("a stream that is no sequence of event lines becomes opaque, and not a byte of it changes", () => {
  const good = jsonEvent("ADDED", pod).toString();
  const bad = [
    JSON.stringify({ type: "ADDED", object: pod }, undefined, 2),
    '{"kind":"PodList","items":[]}\n',
    '{ "type":"ADDED","object":{}}\n',
    '{"type":"CREATED","object":{}}\n',
    '{"type":"ADDEDX","object":{}}\n',
    '{"type":"BOOKMARK","Object":{}}\n',
    '{"object":{},"type":"ADDED"}\n',
    '{"type":"ADDED"}\n',
    '{"type":"ADDED","object":',
    '{"type":"ADDED","object":\n',
    '{"type":"ADDED","object":{}} \n',
    '{"type":"ADDED","object":[]}\n',
    '{"type":"ADDED","object":null}\n',
    '{"type":"ADDED","object":{"a": 1}}\n',
    '{"type":"ADDED","object":{"a":"\t"}}\n',
    '{"type":"ADDED","object":{a:1}}\n',
    '{"type":"ADDED","object":{"metadata":{"name":"\n"}}}\n',
    '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}x}}\n',
    '{"type":"ADDED","object":{}}\r\n',
    "\n",
    "}\n",
    "404 page not found\n",
  ];
  for (const text of bad) {
    for (const chunks of everyCut(Buffer.from(`${good}${text}\n${good}`))) {
      const { forwarded, held, isOpaque: gaveUp } = relayed(new JsonEvents(false), chunks);
      assert.is(gaveUp, true, text);
      assert.equal(Buffer.concat([forwarded, held]).toString(), `${good}${text}\n${good}`);
    }
  }
});

test("a line without end is given up at the limit, not held for ever (A60)", () => {
  const decoder = new JsonEvents(false);
  const head = Buffer.from('{"type":"ADDED","object":{"note":"');
  const block = Buffer.alloc(1 << 20, 0x78);
  assert.is(decoder.next(head, 0, head.length), needsMore);
  for (let fed = head.length; fed + block.length <= eventLimits.eventBytes; fed += block.length)
    assert.is(decoder.next(block, 0, block.length), needsMore);
  assert.is(decoder.next(block, 0, block.length), isOpaque);
});

test("an event as large as the limit goes on whole, and one byte more does not", () => {
  const event = (size: number): Buffer => {
    const bytes = Buffer.alloc(size + 1, 0x20);
    bytes.write('{"type":"ADDED","object":{"note":"', 0);
    bytes.write('"}}\n', size - 3);
    return bytes;
  };
  assert.is(
    new JsonEvents(false).next(event(eventLimits.eventBytes), 0, eventLimits.eventBytes + 1),
    eventLimits.eventBytes + 1,
  );
  assert.is(
    new JsonEvents(false).next(event(eventLimits.eventBytes + 1), 0, eventLimits.eventBytes + 2),
    isOpaque,
  );
});

test("what is forwarded is the input up to its last boundary, for any events and any cuts", () => {
  const event = fc
    .tuple(fc.constantFrom(...types), fc.jsonValue())
    .map(([type, spec]) => jsonEvent(type, { spec }));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), fc.nat(200), sizes, (events, missing, at) => {
      const all = Buffer.concat(events);
      const input = all.subarray(0, Math.max(0, all.length - missing));
      const boundary = input.lastIndexOf("\n") + 1;
      const decoder = new JsonEvents(false);
      const { forwarded, held, isOpaque: gaveUp } = relayed(decoder, cut(input, at));
      assert.is(gaveUp, false);
      assert.equal(forwarded, input.subarray(0, boundary));
      assert.equal(held, input.subarray(boundary));
      assert.is(decoder.isWhole, held.length === 0);
    }),
    { numRuns: 2000 },
  );
});

test("no bytes at all, however cut, are lost, changed or doubled", () => {
  const piece = fc.constantFrom(
    '{"type":"ADDED","object":',
    '{"type":"ERROR",',
    '"object":',
    "{}",
    "}",
    "\n",
    "\0",
    "x",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), sizes, (pieces, at) => {
      const input = Buffer.from(pieces.join(""));
      const { forwarded, held } = relayed(new JsonEvents(false), cut(input, at));
      assert.equal(Buffer.concat([forwarded, held]), input);
    }),
    { numRuns: 2000 },
  );
});

test.run();
