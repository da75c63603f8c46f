import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene } from "../../support/attack.ts";
import { headers } from "../../support/h2-frames.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";

const test = suite("attacks/whole/capacity");

let scene: Scene;
test.before(async () => {
  // Of 200 descriptors 90 are for clients, of two listeners.
  scene = await Scene.open({ openFiles: 200 });
});
test.after.each(async () => {
  await scene.settled();
});
test.after(() => scene.close());

test("A24: more sockets than there are descriptors are turned away, nobody else is, and room comes back", async () => {
  const { port, plainPort } = scene.proxy.place;
  const peers: RawPeer[] = [];
  for (let count = 0; count < 240; count += 1)
    peers.push(await connectRaw(count % 2 === 0 ? port : plainPort));
  await pause(300);
  const open = peers.filter((peer) => !peer.isEnded && !peer.isClosed).length;
  assert.ok(open <= 90 && open >= 60, `${open} are open`);
  assert.match(await scene.metrics(), "watchkeeper_build_info");
  for (const peer of peers) peer.socket.destroy();
  await pause(200);
  const client = await scene.attacker();
  client.send(headers(1).get("/api"));
  await client.expect(/HEADERS 1 :status=200/);
});

test.run();
