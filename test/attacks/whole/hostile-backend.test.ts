import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene } from "../../support/attack.ts";
import {
  continued,
  data,
  type Frame,
  headers,
  ping,
  raw,
  reset,
  settings,
  windowUpdate,
} from "../../support/h2-frames.ts";
import { blockOf, RawBackend } from "../../support/raw-backend.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/hostile-backend");

let hostile: RawBackend;
let scene: Scene;
test.before(async () => {
  // The bystander must be bound to the other backend. A GET that the hostile backend leaves unanswered would make this
  // backend suspect for the rest of the test.
  hostile = await RawBackend.start({ isListening: false });
  scene = await Scene.open({ targets: [hostile] });
  hostile.isListening = true;
});
test.after.each(async () => {
  plays(() => {});
  hostile.greeting = [settings()];
  await scene.settled();
});
test.after(async () => {
  await scene.close();
  hostile.stop();
});

/**
 * Sets how the hostile backend answers a client's request. A GET of the bystander may arrive there as a hedge, and
 * always gets a valid response.
 */
function plays(answer: RawBackend["play"]): void {
  hostile.play = (asked) => {
    if (!asked.line.includes("/pods/mine")) answer(asked);
    else asked.say(headers(asked.id).status(200), data(asked.id, "{}", "end"));
  };
}

/**
 * Returns a client whose requests probably go to the hostile backend, because it has fewer streams than the backend of
 * the bystander.
 */
async function client(first?: Frame): Promise<RawH2> {
  await scene.ready("hostile");
  return scene.attacker(first ?? settings({ INITIAL_WINDOW_SIZE: 0x7fff_ffff }));
}

type Play = (id: number) => readonly (Frame | Frame[])[];
const ok: [string, string] = ["content-type", "application/json"];

/**
 * The client's response after a violation before any part of the backend's response was forwarded. It must not be a
 * reset, after which Go's transport would send a write again.
 */
const badGateway = /HEADERS 1 :status=502/;

/** Violations after which the client gets a 502 or a reset. The response must never look complete. */
const cut: Record<string, readonly [Play, RegExp]> = {
  "a head of 4,000 fields": [
    (id) => continued(headers(id).status(200, ...bomb(4000, 1)), 16_000, 16_000),
    badGateway,
  ],
  "a head of 200 KiB": [
    (id) => [
      continued(headers(id).status(200, ...bomb(50, 4000)), ...Array.from({ length: 12 }, () => 16_000)),
    ],
    badGateway,
  ],
  "trailers of 200 KiB": [
    (id) => [
      headers(id).status(200, ["content-type", "text/plain"]),
      data(id, Buffer.alloc(15_000)),
      continued(headers(id).trailers(...bomb(50, 4000)), ...Array.from({ length: 12 }, () => 16_000)),
    ],
    badGateway,
  ],
  "twenty interim heads": [
    (id) => Array.from({ length: 20 }, () => headers(id).status(103, ["link", "x"])),
    badGateway,
  ],
  "DATA beyond the window": [
    (id) => [headers(id).status(200), ...Array.from({ length: 20 }, () => data(id, Buffer.alloc(16_384)))],
    /RST_STREAM 1 FLOW_CONTROL_ERROR/,
  ],
  "less than its content-length": [
    (id) => [headers(id).status(200, ["content-length", "100"]), data(id, "0123456789", "end")],
    badGateway,
  ],
  "more than its content-length": [
    (id) => [headers(id).status(200, ["content-length", "3"]), data(id, "0123456789", "end")],
    badGateway,
  ],
  "RST_STREAM(NO_ERROR) in the middle": [
    (id) => [headers(id).status(200, ok), data(id, "half"), reset(id, "NO_ERROR")],
    /RST_STREAM 1 INTERNAL_ERROR/,
  ],
  "RST_STREAM(CANCEL) in the middle": [
    (id) => [headers(id).status(200, ok), data(id, "half"), reset(id, "CANCEL")],
    /RST_STREAM 1 INTERNAL_ERROR/,
  ],
  "RST_STREAM(REFUSED_STREAM) in the middle": [
    (id) => [headers(id).status(200, ok), data(id, "half"), reset(id, "REFUSED_STREAM")],
    /RST_STREAM 1 INTERNAL_ERROR/,
  ],
  "RST_STREAM(NO_ERROR) instead of an answer": [
    (id) => [reset(id, "NO_ERROR")],
    /RST_STREAM 1 INTERNAL_ERROR/,
  ],
  "a line feed in a field": [(id) => [headers(id).status(200, ["x-a", "b\r\nset-cookie: evil"])], badGateway],
  "a connection field": [(id) => [headers(id).status(200, ["connection", "close"])], badGateway],
  "a body before its head": [(id) => [data(id, "x")], badGateway],
  "status 101": [(id) => [headers(id).status(101)], badGateway],
  "status 20": [(id) => [headers(id).status(20)], badGateway],
  "two statuses": [(id) => [headers(id).status(200, [":status", "200"])], badGateway],
  "204 with a body": [(id) => [headers(id).status(204), data(id, "x", "end")], badGateway],
  "a pseudo-field in trailers": [
    (id) => [headers(id).status(200), data(id, "x"), headers(id).trailers([":status", "200"])],
    badGateway,
  ],
};

function bomb(count: number, size: number): [string, string][] {
  return Array.from({ length: count }, (_, at) => [`x-${at}`, "y".repeat(size)]);
}

/**
 * Returns a client whose request 1 the hostile backend has received. Tries several clients, because the proxy may bind
 * one to the other backend, and binds all to it until the hostile backend is ready.
 */
async function asker(answer: RawBackend["play"], first?: Frame): Promise<RawH2> {
  for (let tries = 0; tries < 50; tries += 1) {
    const asked: number[] = [];
    plays((request) => {
      asked.push(request.id);
      answer(request);
    });
    const own = await client(first);
    own.send(headers(1).get("/api/v1/pods"));
    for (let waits = 0; waits < 100 && asked.length === 0 && own.count(/^HEADERS 1 /) === 0; waits += 1)
      await pause(20);
    if (asked.length > 0) return own;
    await pause(100);
  }
  throw new Error("No client is bound to the hostile backend");
}

test("the honest twin of A60, A37: interim heads, trailers, an empty frame and a slow body pass as they are", async () => {
  const own = await asker(({ id, say }) => {
    say(headers(id).status(103, ["link", "x"]), headers(id).status(200, ok), data(id, ""), data(id, "{}"));
    setTimeout(() => say(data(id, "[]"), headers(id).trailers(["x-sum", "2"])), 300);
  });
  await own.expect(/HEADERS 1 :status=103/);
  await own.expect(/HEADERS 1 x-sum=2 END/);
  assert.is(own.texts.get(1), "{}[]");
});

for (const [what, [play, line]] of Object.entries(cut)) {
  test(`A60, A37, F9: an answer with ${what} never looks whole`, async () => {
    const own = await asker(
      ({ id, say }) => say(...play(id).flat()),
      settings({ INITIAL_WINDOW_SIZE: what.includes("beyond") ? 0 : 65_535 }),
    );
    await own.expect(line);
    if (line === badGateway) {
      await own.expect(/DATA 1 .*END/);
      assert.match(own.texts.get(1) ?? "", '"kind":"Status"');
      assert.is(own.count(/^RST_STREAM 1 /), 0);
    } else assert.is(own.count(/^(DATA|HEADERS) 1 .*END$/), 0);
  });
}

/** Violations that end the upstream connection. A GET without a response is then answered by the other backend. */
const deadly: Record<string, Play> = {
  PUSH_PROMISE: (id) => [raw(5, 4, id, Buffer.from([0, 0, 0, 2, 0x88]))],
  "MAX_FRAME_SIZE=0": () => [settings({ MAX_FRAME_SIZE: 0 })],
  "a window beyond 2^31 - 1": () => [windowUpdate(0, 0x7fff_ffff)],
  "broken HPACK": (id) => [blockOf(id, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]))],
  "a flood of SETTINGS": () => Array.from({ length: 1000 }, () => settings()),
  "a flood of PINGs": () => Array.from({ length: 1000 }, (_, at) => ping(at)),
  "an ALTSVC flood": (id) => Array.from({ length: 200 }, () => raw(10, 0, id, Buffer.alloc(16_000))),
  "a response on a stream that was never opened": () => [headers(1001).statusOnly(200)],
  "endless CONTINUATION": (id) => [
    raw(1, 0, id, "\x88"),
    ...Array.from({ length: 17_000 }, () => raw(9, 0, id, "")),
  ],
};

for (const [what, play] of Object.entries(deadly)) {
  test(`A60: ${what} ends that upstream connection, and a GET on it is answered elsewhere`, async () => {
    plays(({ id, say }) => say(...play(id).flat()));
    const own = await client();
    own.send(headers(1).get("/api/v1/pods"));
    await own.expect(/HEADERS 1 :status=200/);
    await own.expect(/DATA 1 .*END/);
  });
}

test("A60: a flood of DATA for a stream that is over ends that upstream connection", async () => {
  const { connectionsClosed } = await scene.proxy.state();
  const own = await asker(({ id, say }) => {
    say(headers(id).status(200, ok), data(id, "whole", "end"));
    for (let count = 0; count < 400; count += 1) say(data(id, Buffer.alloc(16_384)));
  });
  await own.expect(/DATA 1 "whole" END/);
  await closedOne(connectionsClosed.length);
});

const nothing: Record<string, (id: number) => Frame> = {
  "RST_STREAM for a stream that is over": (id) => reset(id, "CANCEL"),
  "HEADERS for a stream that is over": (id) => headers(id).trailers(["x-a", "b"]),
  "window updates of one byte": () => windowUpdate(0, 1),
  "empty DATA for a stream that is over": (id) => data(id, ""),
};

for (const [what, frame] of Object.entries(nothing))
  test(`A60: a flood of ${what} ends that upstream connection`, async () => {
    const { connectionsClosed } = await scene.proxy.state();
    const own = await asker(({ id, say }) => {
      say(headers(id).status(200, ok), data(id, "whole", "end"));
      say(...Array.from({ length: 60_000 }, () => frame(id)));
    });
    await own.expect(/DATA 1 "whole" END/);
    await closedOne(connectionsClosed.length);
  });

test("A60: a flood of empty DATA ends that upstream connection, whether its client reads or not", async () => {
  for (const window of [0, 65_535]) {
    const { connectionsClosed } = await scene.proxy.state();
    await asker(
      ({ id, say }) => {
        say(headers(id).status(200, ok), data(id, "x"));
        say(...Array.from({ length: 60_000 }, () => data(id, "")));
      },
      settings({ INITIAL_WINDOW_SIZE: window }),
    );
    await closedOne(connectionsClosed.length);
  }
});

test("A60: a backend that offers no stream any more leaves its clients to the other", async () => {
  hostile.greeting = [settings({ MAX_CONCURRENT_STREAMS: 0 })];
  plays(({ id, say }) =>
    say(settings({ MAX_CONCURRENT_STREAMS: 0 }), headers(id).status(200, ok), data(id, "x", "end")),
  );
  const own = await client();
  own.send(headers(1).get("/api/v1/pods"));
  await own.expect(/DATA 1 .*END/);
  own.send(headers(3).get("/api/v1/pods"));
  await own.expect(/HEADERS 3 :status=200/, 10_000);
});

test("A60: windows shut for good hold an upload back at its client, and cost no memory", async () => {
  const before = await scene.proxy.state();
  plays(({ say }) => say(settings({ INITIAL_WINDOW_SIZE: 0 })));
  const own = await client();
  own.send(headers(1).post("/api/v1/pods"));
  own.send(...Array.from({ length: 16 }, () => data(1, Buffer.alloc(16_000))));
  await own.flushed();
  await pause(300);
  const after = await scene.proxy.state();
  assert.ok(after.heapBytes - before.heapBytes < 4 << 20, `${after.heapBytes - before.heapBytes}`);
});

/** Waits until more than `before` upstream connections have ended. */
async function closedOne(before: number): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await scene.proxy.state()).connectionsClosed.length > before) return;
    await pause(50);
  }
  assert.unreachable("no connection has ended");
}

test.run();
