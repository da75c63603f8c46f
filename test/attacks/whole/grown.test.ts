/**
 * A7: what the proxy adds to a request must not make a field longer than a backend accepts. A server built on nghttp2
 * ends the whole session for a field above 64 KiB, and the session may be an upstream connection that many clients
 * share.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sceneOf } from "../../support/attack.ts";
import { continued, type Fields, type Frame, headers } from "../../support/h2-frames.ts";
import { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/grown");

const scene = sceneOf(test, () => ({
  listeners: '  - {name: trusting, address: "127.0.0.1:0", trustedForwarderCIDRs: [127.0.0.0/8]}',
}));

const whole = (path: string, ...fields: Fields): Frame[] =>
  continued(headers(1).get(path, ...fields), ...Array<number>(7).fill(16_000));

for (const query of [
  "watch=1&resourceVersion=5",
  "watch=1",
  "watch=1&resourceVersion=0&sendInitialEvents=true",
])
  test(`A7: a ${query} of 65,520 bytes is asked for as it is, without bookmarks for the proxy`, async () => {
    const { connectionsClosed } = await scene.proxy.state();
    const path = `/api/v1/pods?${query}&x=`.padEnd(65_520, "y");
    const client = await scene.attacker();
    client.send(...whole(path));
    await client.expect(/^HEADERS 1 :status=200/);
    await client.expect(/^DATA 1 /);
    assert.is(scene.target.seen(path), 1);
    assert.is((await scene.proxy.state()).connectionsClosed.length, connectionsClosed.length);
  });

test("A7: addresses behind a trusted forwarder that come to more than a field are omitted, but for the forwarder's own", async () => {
  const client = await RawH2.connect({ port: scene.proxy.place.ports["trusting"] ?? 0 });
  client.send(
    ...whole("/fields", ["x-forwarded-for", "1".repeat(60_000)], ["x-forwarded-for", "2".repeat(60_000)]),
  );
  await client.expect(/^DATA 1 .*END/);
  assert.match(client.texts.get(1) ?? "", '"x-forwarded-for","127.0.0.1"');
  client.destroy();
});

test("the honest twin of A7: a watch with a long selector gets its bookmarks, and forwarders' addresses pass", async () => {
  const client = await scene.attacker();
  const path = `/api/v1/pods?watch=1&resourceVersion=5&labelSelector=${"a%2C".repeat(10_000)}b`;
  client.send(...whole(path));
  await client.expect(/^HEADERS 1 :status=200/);
  assert.is(scene.target.seen(`${path}&allowWatchBookmarks=true`), 1);
  const forwarded = await RawH2.connect({ port: scene.proxy.place.ports["trusting"] ?? 0 });
  forwarded.send(
    headers(1).get("/fields", ["x-forwarded-for", "203.0.113.7"], ["x-forwarded-for", "10.0.0.1"]),
  );
  await forwarded.expect(/^DATA 1 .*END/);
  assert.match(forwarded.texts.get(1) ?? "", '"x-forwarded-for","203.0.113.7, 10.0.0.1, 127.0.0.1"');
  forwarded.destroy();
});

test.run();
