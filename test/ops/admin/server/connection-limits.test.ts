/** Tests an admin port whose clients open too many sockets, or send too many requests at once. */
import { connect, type Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { Answers } from "../../../../src/ops/admin/server/answers.ts";
import { secureServer } from "../../../../src/ops/admin/server/secure-server.ts";
import { type Admin, startAdmin } from "../../../../src/ops/admin/server/server.ts";
import { serverTlsOptions } from "../../../../src/proxy/tls/server-context.ts";
import { checkPair } from "../../../../src/proxy/tls/serving-pair.ts";
import { manualClock } from "../../../support/clock.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/connection-limits");

const opened: Admin[] = [];
const sockets: Socket[] = [];
test.after.each(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const admin of opened.splice(0)) await within(20_000, "the admin port to stop", admin.stop());
});

/** Starts an admin port on which scrapes wait until `serve` is called. */
async function start() {
  const clock = manualClock();
  const journal = new Journal(clock);
  const { promise, resolve } = Promise.withResolvers<string>();
  let scrapes = 0;
  const metrics = (): Promise<string> => promise;
  const live = () => [{ name: "ping", ok: true }];
  const answers = new Answers({ journal, clock, live, ready: live, metrics });
  const asker = {
    checks: answers.checks.bind(answers),
    scrape: () => {
      scrapes += 1;
      return answers.scrape();
    },
  };
  const admin = await startAdmin({ host: "127.0.0.1", port: 0, journal, asker, contentType: "text/plain" });
  if (admin instanceof Failure) throw new Error(admin.message);
  opened.push(admin);
  const port = Number(admin.address.split(":").at(-1));
  return { port, serve: () => resolve("a 1\n"), asked: () => scrapes };
}

/** Sends `text` at once. `told` returns all that comes back, and `end` resolves when the connection ends. */
function raw(port: number, text: string): { readonly told: () => string; readonly end: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(port, "127.0.0.1", () => socket.write(text));
  sockets.push(socket);
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  socket.on("error", () => resolve()).on("close", () => resolve());
  return { told: () => answer, end: within(20_000, "the socket's end", promise) };
}

const question = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";

async function isWell(port: number): Promise<void> {
  const { status } = await fetch(`http://127.0.0.1:${port}/livez`, { headers: { connection: "close" } });
  assert.is(status, 200);
}

test("idle sockets beyond the limit push out the oldest, so a probe still gets in", async () => {
  const { port } = await start();
  const ends = Array.from({ length: adminLimits.adminSockets + 20 }, () => raw(port, "GET /livez").end);
  await within(20_000, "the oldest to be ended", Promise.race(ends));
  for (let times = 0; times < 5; times++) await isWell(port);
});

test("a client that sends one request after another before the first answer loses the socket, and others are answered", async () => {
  const { port, asked } = await start();
  await raw(port, question.repeat(2000)).end;
  assert.is(asked(), adminLimits.adminWaiting);
  await isWell(port);
});

test("a few at once are answered in turn, and again", async () => {
  const { port, serve } = await start();
  const { told } = raw(port, question.repeat(adminLimits.adminWaiting));
  serve();
  for (let left = 200; left > 0 && told().split("a 1").length <= adminLimits.adminWaiting; left -= 1)
    await new Promise((go) => setTimeout(go, 50));
  assert.is(told().split("HTTP/1.1 200 OK").length - 1, adminLimits.adminWaiting);
  sockets[0]?.write(question);
  for (let left = 200; left > 0 && told().split("a 1").length <= adminLimits.adminWaiting + 1; left -= 1)
    await new Promise((go) => setTimeout(go, 50));
  assert.is(told().split("HTTP/1.1 200 OK").length - 1, adminLimits.adminWaiting + 1);
});

test("a client that stays silent, or stops inside of a head or a handshake, is closed after ten seconds, with and without TLS", async () => {
  const { port } = await start();
  const { authority } = await testPki();
  const { certificate, key } = authority.issue({ name: "localhost", hosts: ["localhost"] });
  const pair = checkPair(certificate, key, wallClock.wall());
  if (pair instanceof Failure) throw new Error(pair.message);
  const used = { certificate: { current: { pair } }, options: serverTlsOptions() };
  const secure = secureServer({}, used, () => {});
  await new Promise<void>((resolve) => {
    secure.listen(0, "127.0.0.1", resolve);
  });
  const bound = secure.address();
  const tlsPort = typeof bound === "object" && bound !== null ? bound.port : 0;
  const startedAt = performance.now();
  const part = "GET /livez HTTP/1.1\r\nhost: ";
  await Promise.all(
    [raw(port, ""), raw(port, part), raw(tlsPort, ""), raw(tlsPort, "\x16\x03")].map(({ end }) => end),
  );
  const tookMs = performance.now() - startedAt;
  secure.close();
  assert.ok(tookMs > 9000 && tookMs < 15_000, `${tookMs} ms`);
});

test.run();
