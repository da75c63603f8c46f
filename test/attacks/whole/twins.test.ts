/** Heavy, unusual and slow, but honest: a client that resembles an attacker must be served like any other. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf, times } from "../../support/attack.ts";
import {
  continued,
  data,
  type Fields,
  headers,
  padded,
  ping,
  preface,
  prioritized,
  priority,
  raw,
  reset,
  settings,
  settingsAck,
  windowUpdate,
  wire,
} from "../../support/h2-frames.ts";

const test = suite("attacks/whole/twins");

const scene = sceneOf(test);

test("the honest twin of A5, A7, A9: heads of 60 KiB in five pieces, with table updates and references, over and over", async () => {
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 1 << 20 }));
  client.send(windowUpdate(0, 1 << 24));
  const groups: Fields = times(300, (at) => [
    "impersonate-group",
    `a group with a long name, of number ${at}, ${"x".repeat(140)}`,
  ]);
  for (let round = 0; round < 20; round += 1) {
    const head = headers(2 * round + 1).get("/fields", ...groups);
    const updated = {
      ...head,
      payload: Buffer.concat([Buffer.from([0x20, 0x3f, 0xe1, 0x1f]), head.payload]),
    };
    client.send(continued(updated, 16_000, 16_000, 16_000, 9000));
    await client.until("the answer", () => client.count(new RegExp(`^DATA ${2 * round + 1} .*END`)) === 1);
  }
  assert.is(client.count(/GOAWAY|RST_STREAM| :status=4/), 0);
});

test("the honest twin of A12, A13, A14, A17, A21: settings known and unknown, windows changed under a download, PINGs, a strange frame", async () => {
  const client = await scene.attacker(
    settings({
      HEADER_TABLE_SIZE: 65_536,
      ENABLE_PUSH: 0,
      MAX_FRAME_SIZE: 1 << 20,
      MAX_HEADER_LIST_SIZE: 1 << 24,
    }),
  );
  client.send(raw(4, 0, 0, Buffer.from("000900000001f0f0deadbeef", "hex")), windowUpdate(0, 1 << 24));
  client.send(headers(1).get("/big/3000000"));
  for (let round = 0; round < 20; round += 1) {
    client.send(
      settings({ INITIAL_WINDOW_SIZE: round % 2 === 0 ? 16_384 : 1 << 20 }),
      ping(round),
      settingsAck(),
    );
    client.send(raw(0xfa, 0x5, 0, Buffer.alloc(2000)));
    await pause(20);
  }
  client.send(windowUpdate(1, 1 << 22));
  await client.expect(/^DATA 1 .*END$/);
  assert.is(client.bodies.get(1), 3_000_000);
});

test("the honest twin of A2, A16, A20, A29, A38: padded uploads with priorities, an empty last frame, lengths and trailers", async () => {
  const client = await scene.attacker();
  for (let round = 0; round < 100; round += 1) {
    const id = 2 * round + 1;
    client.send(
      prioritized(headers(id).post("/fields", ["content-length", "6"]), Math.max(0, id - 2)),
      priority(id, 0),
      padded(data(id, "abc"), 200),
      data(id, "def"),
      round % 2 === 0 ? data(id, "", "end") : headers(id).trailers(["x-checksum", "7"]),
      windowUpdate(id, 0x7000_0000),
    );
  }
  await client.until("the answers", () =>
    times(100, (at) => client.bodies.get(2 * at + 1) ?? 0).every((count) => count > 0),
  );
  assert.is(client.count(/GOAWAY|RST_STREAM/), 0);
});

test("the honest twin of A10, A11, A27, A28, A31, A32, A59: names, methods, hosts and values at the edge of what is legal", async () => {
  const client = await scene.attacker();
  client.send(
    headers(1).get(
      "/fields",
      ["host", "API"],
      ["te", "trailers"],
      ["__proto__", "x"],
      ["x-empty", ""],
      ["x-obs", "\xe9\xff"],
      ["x_under", "a\tb"],
    ),
    headers(3).of(
      [
        [":method", "OPTIONS"],
        [":scheme", "https"],
        [":path", "*"],
        [":authority", "[::1]:6443"],
      ],
      "end",
    ),
    continued(
      headers(5).of(
        [
          [":method", "get"],
          [":scheme", "http"],
          [":path", `/${"a/".repeat(20_000)}?x=%2f`],
          [":authority", "a"],
        ],
        "end",
      ),
      16_000,
      16_000,
    ),
    headers(7).of(
      [
        [":method", "PATCH"],
        [":scheme", "https"],
        [":path", "/fields"],
        ["host", "by-host-alone"],
      ],
      "end",
    ),
  );
  for (const id of [1, 3, 5, 7]) await client.expect(new RegExp(`^HEADERS ${id} :status=200`));
  assert.match(client.texts.get(1) ?? "", '"x-empty",""');
});

test("the honest twin of A1, A3, A4: three thousand requests, a hundred at a time, one in ten given up", async () => {
  const client = await scene.attacker();
  client.send(windowUpdate(0, 1 << 24));
  for (let round = 0; round < 30; round += 1) {
    const mine = times(100, (at) => 200 * round + 2 * at + 1);
    client.send(...mine.map((id) => headers(id).get(id % 20 === 1 ? "/api/v1/pods?watch=true" : "/api")));
    await client.until("the answers", () =>
      mine.every((id) => id % 20 === 1 || (client.bodies.get(id) ?? 0) > 0),
    );
    for (const id of mine.filter((one) => one % 20 === 1)) {
      await client.expect(new RegExp(`^HEADERS ${id} :status=200`));
      client.send(reset(id, "CANCEL"));
    }
    client.heard.length = 0;
  }
  client.send(headers(100_001).get("/api"));
  await client.expect(/^HEADERS 100001 :status=200/);
});

test("the honest twin of A6, A18, A22, A23, A25: three seconds before the preface, in a head, in a frame, and in a body", async () => {
  const client = await scene.attacker(null);
  await pause(3000);
  client.sendBytes(Buffer.from(preface));
  client.send(settings());
  const [first = raw(1, 0, 1), second = raw(9, 4, 1)] = continued(
    headers(1).post("/fields", ["content-length", "4"]),
    10,
  );
  client.send(first);
  await pause(3000);
  client.send(second);
  const body = wire(data(1, "body", "end"));
  client.sendBytes(body.subarray(0, 11));
  await pause(3000);
  client.sendBytes(body.subarray(11));
  await client.expect(/^HEADERS 1 :status=200/);
});

test("the honest twin of A24, A51, A52: sixty clients that come at once are all served, and go as they like", async () => {
  const clients = await Promise.all(times(60, () => scene.attacker()));
  for (const client of clients) client.send(headers(1).get("/api"));
  await Promise.all(clients.map((client) => client.expect(/^HEADERS 1 :status=200/)));
  for (const [at, client] of clients.entries()) {
    if (at % 3 === 0) client.socket.end();
    else if (at % 3 === 1) client.socket.destroy();
  }
});

test("the honest twin of A53, A54, A55: a name with umlauts, a verb of its own and a token reach the backend as they are", async () => {
  const client = await scene.attacker();
  const agent = 'kubectl/v1.36 (läppi; "q") \\';
  client.send(
    headers(1).get("/fields?token=secret", ["user-agent", agent], ["authorization", "Bearer s.e.cret"]),
  );
  await client.expect(/^DATA 1 .*END/);
  assert.match(client.texts.get(1) ?? "", "Bearer s.e.cret");
});

test.run();
