import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sceneOf, times } from "../../support/attack.ts";
import {
  data,
  type Frame,
  goAway,
  headers,
  padded,
  ping,
  pong,
  priority,
  raw,
  reset,
  settings,
  settingsAck,
  windowUpdate,
} from "../../support/h2-frames.ts";

const test = suite("attacks/whole/control-frames");

const scene = sceneOf(test);

const hang = headers(1).get("/api/v1/hang");

/** A client that reads nothing sends each of these at once. */
const floods: Record<string, readonly Frame[]> = {
  "A12: empty SETTINGS": times(10_000, () => settings()),
  "A12: one SETTINGS of 2,700 entries": [raw(4, 0, 0, Buffer.alloc(6 * 2700, "\0\x08\0\0\0\x01", "latin1"))],
  "A12: acknowledgements of nothing": times(10_000, () => settingsAck()),
  "A13: windows opened and shut over a hundred streams": [
    ...times(100, (at) => headers(2 * at + 1).get("/api/v1/hang")),
    ...times(10_000, (at) => settings({ INITIAL_WINDOW_SIZE: at % 2 === 0 ? 0 : 0x7fff_ffff })),
  ],
  "A14: PING": times(10_000, ping),
  "A14: answers to PINGs that were never sent": times(10_000, pong),
  "A15: PRIORITY on idle streams": times(20_000, (at) => priority(2 * at + 1001, 0)),
  "A15: WINDOW_UPDATE of one byte": times(50_000, () => windowUpdate(0, 1)),
  "A15: RST_STREAM on a closed stream": [headers(1).get("/"), ...times(5000, () => reset(1, "CANCEL"))],
  "A16: empty DATA": [headers(1).post("/api/v1/hang"), ...times(20_000, () => data(1, ""))],
  "A16: DATA of padding only": [
    headers(1).post("/api/v1/hang"),
    ...times(5000, () => padded(data(1, ""), 9)),
  ],
  "A17: frames of unknown type": times(300, () => raw(0xff, 0, 0, Buffer.alloc(16_000))),
  "GOAWAY over and over": [hang, ...times(10_000, () => goAway(0))],
};

for (const [what, frames] of Object.entries(floods)) {
  test(`${what}: the session is sent away`, async () => {
    const before = await scene.proxy.state();
    const client = await scene.attacker();
    client.socket.pause();
    client.send(...frames);
    await client.flushed();
    client.socket.resume();
    await client.expect(/GOAWAY \d+ (ENHANCE_YOUR_CALM|FRAME_SIZE_ERROR)/);
    await client.closed();
    const after = await scene.settled();
    assert.ok(after.rssBytes - before.rssBytes < 32 << 20, `RSS grew by ${after.rssBytes - before.rssBytes}`);
  });
}

test("A16: tiny DATA goes on without piling up", async () => {
  const before = await scene.proxy.state();
  const client = await scene.attacker();
  client.send(headers(1).post("/api/v1/hang"), ...times(50_000, () => data(1, "x")));
  await client.flushed();
  const after = await scene.proxy.state();
  assert.ok(
    after.heapBytes - before.heapBytes < 16 << 20,
    `The heap grew by ${after.heapBytes - before.heapBytes}`,
  );
});

const wrong: Record<string, readonly [Frame, RegExp]> = {
  "A20: a session's window beyond 2^31 - 1": [windowUpdate(0, 0x7fff_ffff), /GOAWAY \d+ FLOW_CONTROL_ERROR/],
  "A20: a stream's window beyond 2^31 - 1": [windowUpdate(1, 0x7fff_ffff), /RST_STREAM 1 FLOW_CONTROL_ERROR/],
  "A20: an update of 0": [windowUpdate(0, 0), /GOAWAY \d+ PROTOCOL_ERROR/],
  "A21: INITIAL_WINDOW_SIZE of 2^31": [
    settings({ INITIAL_WINDOW_SIZE: 0x8000_0000 }),
    /GOAWAY \d+ FLOW_CONTROL_ERROR/,
  ],
  "A21: MAX_FRAME_SIZE of 0": [settings({ MAX_FRAME_SIZE: 0 }), /GOAWAY \d+ PROTOCOL_ERROR/],
  "A21: MAX_FRAME_SIZE of 16,383": [settings({ MAX_FRAME_SIZE: 16_383 }), /GOAWAY \d+ PROTOCOL_ERROR/],
  "A21: MAX_FRAME_SIZE of 2^24": [settings({ MAX_FRAME_SIZE: 1 << 24 }), /GOAWAY \d+ PROTOCOL_ERROR/],
  "A21: ENABLE_PUSH of 2": [settings({ ENABLE_PUSH: 2 }), /GOAWAY \d+ PROTOCOL_ERROR/],
  "A21: an acknowledgement with a payload": [raw(4, 1, 0, "123456"), /GOAWAY \d+ FRAME_SIZE_ERROR/],
  "A21: SETTINGS of five bytes": [raw(4, 0, 0, "12345"), /GOAWAY \d+ FRAME_SIZE_ERROR/],
  "PUSH_PROMISE from a client": [raw(5, 4, 1, Buffer.from([0, 0, 0, 2])), /GOAWAY \d+ PROTOCOL_ERROR/],
};

for (const [what, [frame, line]] of Object.entries(wrong)) {
  test(`${what} is answered with its code`, async () => {
    const client = await scene.attacker();
    client.send(hang, frame);
    await client.expect(line);
    if (line.source.startsWith("GOAWAY")) await client.closed();
  });
}

test("the honest twin: PINGs, window updates and priorities at a busy client's pace", async () => {
  const client = await scene.attacker();
  for (let round = 0; round < 10; round += 1) {
    const mine = times(50, (at) => 100 * round + 2 * at + 1);
    client.send(ping(round), settings({ INITIAL_WINDOW_SIZE: 1 << 20 }), settingsAck());
    client.send(
      ...mine.flatMap((id) => [headers(id).get("/api"), windowUpdate(id, 1000), windowUpdate(0, 1000)]),
    );
    client.send(...times(20, (at) => priority(mine[at] ?? 1, 0)));
    await client.until("the answers", () => mine.every((id) => (client.bodies.get(id) ?? 0) > 0));
  }
  assert.is(client.count(/GOAWAY|RST_STREAM/), 0);
});

test.run();
