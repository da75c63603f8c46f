import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { Log } from "../../../src/ops/admin/events/log.ts";
import { pause, Scene } from "../../support/attack.ts";
import { manualClock } from "../../support/clock.ts";
import { data, headers, settings } from "../../support/h2-frames.ts";
import { RawBackend } from "../../support/raw-backend.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/log-and-metrics");

let hostile: RawBackend;
let scene: Scene;
test.before(async () => {
  hostile = await RawBackend.start({ isListening: false });
  hostile.play = ({ socket }) => socket.destroy();
  scene = await Scene.open({ targets: [hostile] });
  hostile.isListening = true;
});
test.after.each(async () => {
  await scene.settled();
});
test.after(async () => {
  await scene.close();
  hostile.stop();
});

const secret = "c2VjcmV0LXRva2VuLXZhbHVl";
const evil = `\u001b[31m","err":"forged"}\u2028`;

test("A54: ten thousand methods, paths, users and broken SETTINGS are a bounded number of series", async () => {
  for (let round = 0; round < 20; round += 1) {
    const client = await scene.attacker();
    const ids = Array.from({ length: 50 }, (_, at) => 2 * at + 1);
    client.send(
      ...ids.map((id) => {
        const of = `${round}-${id}`;
        const path = `/apis/g${of}/v1/namespaces/n${of}/r${of}/x${of}/s${of}`;
        return headers(id).of(
          [
            [":method", id % 4 === 1 ? `M${of}` : "GET"],
            [":scheme", "https"],
            [":path", path],
            [":authority", `h${of}`],
            ["user-agent", `agent ${of}`],
            ["authorization", `Bearer ${of}`],
          ],
          "end",
        );
      }),
    );
    await client.until("answers", () =>
      ids.every((id) => client.count(new RegExp(`^(HEADERS|RST_STREAM) ${id} `)) > 0),
    );
    client.send(settings({ MAX_FRAME_SIZE: round }));
    await client.closed();
  }
  const lines = (await scene.metrics()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.ok(lines.length < 600, `${lines.length} series`);
  const reasons = lines.filter((line) => line.startsWith("watchkeeper_downstream_connections_refused_total"));
  assert.ok(reasons.length <= 3, reasons.join("\n"));
});

/**
 * Returns a client whose write the hostile backend has aborted. Tries several clients, because the proxy may bind one
 * to the other backend, which echoes the path.
 */
async function refused(): Promise<RawH2> {
  for (let tries = 0; tries < 60; tries += 1) {
    // A backend that has just become ready gets few clients at first.
    if (tries > 0) await pause(200);
    await scene.ready("hostile");
    const client = await scene.attacker();
    client.send(
      headers(1).post(
        `/api/v1/secrets?token=${secret}`,
        ["authorization", `Bearer ${secret}`],
        ["cookie", `session=${secret}`],
        ["x-remote-user", secret],
      ),
      data(1, "{}", "end"),
    );
    await client.expect(/DATA 1 .*END/);
    if (client.texts.get(1)?.includes('"kind":"Status"') === true) return client;
  }
  throw new Error("No client is bound to the hostile backend");
}

test("A55: no credential is in what the journal, the metrics or a local reply says", async () => {
  const client = await refused();
  await scene.ready("target");
  const { failures, refusals, faults, connectionsClosed } = await scene.proxy.state();
  const all = [
    await scene.metrics(),
    ...failures,
    ...refusals,
    ...faults,
    ...connectionsClosed,
    ...client.texts.values(),
  ];
  assert.not.match(all.join("\n"), secret);
});

test("A53: an audit id of a megabyte with line feeds and escapes is one short line", () => {
  const lines: string[] = [];
  const clock = manualClock();
  const journal = new Journal(clock);
  const out = { write: (text: string) => void lines.push(text), on() {}, writableLength: 0 };
  for (const format of ["JSON", "Text"] as const) {
    const log = new Log(journal, { out, clock, format, accessLog: "All" });
    const auditId = `${evil}\r\n${"x".repeat(1 << 20)}`;
    journal.write({
      kind: "request.failed",
      code: "backend-lost",
      origin: "backend",
      message: evil,
      auditId,
    });
    log.stop();
  }
  assert.is(lines.length, 2);
  for (const line of lines) {
    assert.ok(line.length < 1500, String(line.length));
    assert.match(line, /^[\x20-\x7e]+\n$/);
  }
});

test.run();
