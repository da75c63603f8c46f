import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf, times } from "../../support/attack.ts";
import { headers } from "../../support/h2-frames.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";

const test = suite("attacks/whole/capacity");

// With 600 descriptors the two listeners together admit 270 clients.
const most = 270;
const scene = sceneOf(test, () => ({ openFiles: 600 }));

/**
 * Opens more sockets than are admitted, each of which sends this text. Then checks that a new client is served once
 * they are closed.
 */
async function flood(says: (at: number) => string, isTls: (at: number) => boolean): Promise<void> {
  const { port, plainPort } = scene.proxy.place;
  const peers: RawPeer[] = [];
  for (const at of times(most + 150, (index) => index)) {
    const peer = await connectRaw(isTls(at) ? port : plainPort);
    peer.send(says(at));
    peers.push(peer);
  }
  await pause(500);
  const open = peers.filter((peer) => !peer.isEnded && !peer.isClosed).length;
  assert.ok(open <= most && open >= most - 30, `${open} are open`);
  assert.match(await scene.metrics(), "watchkeeper_build_info");
  assert.match(await readyz(), "[-]intake failed");
  for (const peer of peers) peer.socket.destroy();
  await pause(200);
  const client = await scene.attacker();
  client.send(headers(1).get("/api"));
  await client.expect(/HEADERS 1 :status=200/);
  // There is room again, but a client was refused a moment ago. Readiness must still fail, so that load balancers do
  // not return at once.
  assert.match(await readyz(), "[-]intake failed");
}

async function readyz(): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${scene.proxy.place.adminPort}/readyz?verbose`);
  return answer.text();
}

test("A24: more sockets than there are descriptors are turned away, no other client is, and room comes back", async () => {
  await flood(
    () => "",
    (at) => at % 2 === 0,
  );
});

test("A24: as many over h1, each with a request that hangs", async () => {
  await flood(
    () => "GET /hang HTTP/1.1\r\nHost: api\r\n\r\n",
    () => false,
  );
});

test.run();
