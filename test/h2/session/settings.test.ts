import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type ErrorCode, errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { applySettings, defaultSettings, setting } from "../../../src/h2/session/settings.ts";
import { raw, type Setting, settings } from "../../support/h2-frames.ts";

const test = suite("h2/session/settings");

function applied(values: Partial<Record<Setting, number>>) {
  const peer = defaultSettings();
  const { payload } = settings(values);
  applySettings(peer, payload, 0, payload.length);
  return peer;
}

test("what a peer has not sent is RFC 9113's default", () => {
  assert.equal(applied({}), {
    hasArrived: true,
    headerTableBytes: 4096,
    maxStreams: Number.POSITIVE_INFINITY,
    initialWindow: 65_535,
  });
});

test("what it sends is applied, to the last value of 32 bits", () => {
  assert.equal(
    applied({ HEADER_TABLE_SIZE: 0xffff_ffff, MAX_CONCURRENT_STREAMS: 0, INITIAL_WINDOW_SIZE: 0x7fff_ffff }),
    { hasArrived: true, headerTableBytes: 0xffff_ffff, maxStreams: 0, initialWindow: 0x7fff_ffff },
  );
});

test("of two values in one frame the last holds (§6.5.3)", () => {
  const peer = defaultSettings();
  const twice = Buffer.concat([
    settings({ INITIAL_WINDOW_SIZE: 100 }).payload,
    settings({ INITIAL_WINDOW_SIZE: 1 }).payload,
  ]);
  applySettings(peer, twice, 0, twice.length);
  assert.is(peer.initialWindow, 1);
});

test("an unknown entry is ignored (§6.5.2)", () => {
  const peer = defaultSettings();
  const { payload } = raw(4, 0, 0, Buffer.from("00ffffffffff00000000ffff", "hex"));
  applySettings(peer, payload, 0, payload.length);
  assert.equal(peer, { ...defaultSettings(), hasArrived: true });
});

const refused: readonly (readonly [Setting, number, ErrorCode])[] = [
  ["ENABLE_PUSH", 2, errorCode.PROTOCOL_ERROR],
  ["INITIAL_WINDOW_SIZE", 0x8000_0000, errorCode.FLOW_CONTROL_ERROR],
  ["MAX_FRAME_SIZE", 0, errorCode.PROTOCOL_ERROR],
  ["MAX_FRAME_SIZE", 16_383, errorCode.PROTOCOL_ERROR],
  ["MAX_FRAME_SIZE", 0x100_0000, errorCode.PROTOCOL_ERROR],
];
for (const [name, value, code] of refused) {
  test(`${name} of ${value} ends the session with the code of §6.5.2 (A21)`, () => {
    assert.throws(
      () => applied({ [name]: value }),
      (error: unknown) => error instanceof ProtocolError && error.code === code && error.scope === "session",
    );
  });
}

test("the numbers are the registry's", () => {
  assert.equal(Object.values(setting), [1, 2, 3, 4, 5, 6]);
  applied({ ENABLE_PUSH: 0, MAX_FRAME_SIZE: 16_384, MAX_HEADER_LIST_SIZE: 0 });
  applied({ ENABLE_PUSH: 1, MAX_FRAME_SIZE: 0xff_ffff, MAX_HEADER_LIST_SIZE: 0xffff_ffff });
});

test.run();
