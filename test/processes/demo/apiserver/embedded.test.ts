/** Runs embedded apiservers as real processes, and checks what a client notices when a fault or signal hits one. */
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { newCluster } from "../../../../demo/apiserver/cluster.ts";
import { Embedded } from "../../../../demo/apiserver/embedded.ts";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/apiserver/embedded");
const { authority, serving } = await testPki();
const store = newCluster(wallClock);
const embedded = new Embedded({ name: "one", store, clock: wallClock, pair: serving });
const port = await embedded.start();
if (port instanceof Failure) throw new Error(port.message);
const sessions: http2.ClientHttp2Session[] = [];
test.after(async () => {
  for (const session of sessions) session.destroy();
  await embedded.stop();
});

function dial(): http2.ClientHttp2Session {
  const session = http2.connect(`https://127.0.0.1:${port as number}`, { ca: authority.certificate });
  session.on("error", () => {});
  sessions.push(session);
  return session;
}

async function statusOf(session: http2.ClientHttp2Session, path = "/readyz"): Promise<number> {
  const stream = session.request({ ":path": path });
  stream.on("error", () => {});
  const [head] = await within(20_000, `a head for ${path}`, once(stream, "response"));
  return Number((head as http2.IncomingHttpHeaders)[":status"]);
}

/** True if a PING is not answered within 150 ms. */
async function isSilent(session: http2.ClientHttp2Session): Promise<boolean> {
  let hasAnswered = false;
  session.ping((error) => (hasAnswered = error === null));
  await new Promise((resolve) => setTimeout(resolve, 150));
  return !hasAnswered;
}

for (const fault of ["hole", "freeze"] as const) {
  test(`under a ${fault} PINGs stay unanswered, and healed the same session goes on`, async () => {
    const session = dial();
    assert.equal([await statusOf(session), await isSilent(session)], [200, false]);
    await embedded.strike(fault);
    assert.is(await isSilent(session), true);
    assert.is(await embedded.heal(fault), undefined);
    assert.is(await statusOf(session), 200);
  });
}

test("under a restart its sessions end and its watches are forgotten, and it comes back on its port", async () => {
  const session = dial();
  assert.is(await statusOf(session, "/api/v1/configmaps?watch=true"), 200);
  assert.is(embedded.watchCount, 1);
  const closed = new Promise<void>((resolve) => void session.on("close", resolve));
  await embedded.strike("restart");
  await within(20_000, "the end of the session", closed);
  while (embedded.watchCount > 0) await new Promise((passed) => setTimeout(passed, 5));
  assert.is(await embedded.heal("restart"), undefined);
  assert.is(await statusOf(dial()), 200);
});

test("a restart on a port that is taken meanwhile is a failure", async () => {
  await embedded.strike("restart");
  const other = net.createServer();
  await new Promise<void>((resolve) => void other.listen(port, "127.0.0.1", resolve));
  const failed = await within(10_000, "the restart", embedded.heal("restart"));
  assert.match(failed?.message ?? "", "EADDRINUSE");
  other.close();
});

test.run();
