/**
 * Two clusters on one port: no spelling of a host name may lead a request from a connection to one cluster into the
 * other.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type SeveralClusters, startClusters } from "../support/clusters.ts";
import { shake } from "../support/front-proxy.ts";
import { type Fields, headers } from "../support/h2-frames.ts";
import { RawPeer } from "../support/raw.ts";
import { Target } from "../support/target.ts";
import { type AskedFor, askBy, rawH2For, ways } from "../support/three-ways.ts";

const test = suite("attacks/clusters");

let targets: { readonly eu: Target; readonly us: Target };
let clusters: SeveralClusters;
test.before(async () => {
  targets = { eu: await Target.start(), us: await Target.start() };
  const { eu, us } = targets;
  clusters = await startClusters([
    { name: "eu", ports: [eu.port], ca: eu.ca },
    { name: "us", ports: [us.port], ca: us.ca },
    { name: "ap", ports: [eu.port], ca: eu.ca },
  ]);
  await clusters.readyAt("eu/b0");
  await clusters.readyAt("us/b0");
});
test.after(async () => {
  await clusters.stop();
  targets.eu.stop();
  targets.us.stop();
});

const asked = (more: Partial<AskedFor>): AskedFor => ({ ...clusters.place, ...more });

/** Returns how many requests for this path each cluster has received. */
const seenBy = (path: string): readonly number[] => [targets.eu.seen(path), targets.us.seen(path)];

/** Spellings of the other cluster's name. */
const names = ["us.test", "US.Test", "us.test.", "us.test:6443", "us.test.:443", "us.test:"];

for (const way of ways) {
  test(`${way}: behind eu's name, or the default, us is asked for in vain, however it is written (A42)`, async () => {
    for (const servername of ["localhost", "EU.test"])
      for (const [at, authority] of names.entries()) {
        const path = `/who/${way}-${servername}-${at}`;
        const { status } = await askBy(way, asked({ servername, authority, path }));
        assert.equal([authority, status, ...seenBy(path)], [authority, 421, 0, 0]);
      }
  });

  test(`${way}: a second name in a field of the client's own is refused, or changes nothing`, async () => {
    const path = `/who/${way}-forwarded`;
    const fields: Fields = [
      ["x-forwarded-host", "us.test"],
      ["forwarded", "host=us.test"],
      ["x-original-url", "https://us.test/"],
      ["x-host", "us.test"],
    ];
    const { status } = await askBy(way, asked({ servername: "eu.test", authority: "eu.test", path, fields }));
    assert.is(Math.floor(status / 100) === 2 || status === 101, true, String(status));
    assert.equal(seenBy(path), [1, 0]);
    const two = `/who/${way}-two`;
    const told = await askBy(way, asked({ authority: "eu.test", path: two, fields: [["host", "us.test"]] }));
    assert.ok(told.status === 400 || told.status === 0, String(told.status));
    assert.equal(seenBy(two), [0, 0]);
  });

  test(`${way}: the honest twin: each name leads to its cluster, and a name that no cluster has to that of the connection`, async () => {
    for (const [authority, expected] of [
      ["us.test", [0, 1]],
      ["US.test.:6443", [0, 1]],
      ["10.0.0.1:6443", [0, 1]],
    ] as const) {
      const path = `/who/${way}-${authority}`;
      await askBy(way, asked({ servername: "us.test", authority, path }));
      assert.equal(seenBy(path), expected, authority);
    }
  });
}

test("h2: one stream that asks for the other cluster costs itself, before and behind it the session serves", async () => {
  const client = await rawH2For(asked({ servername: "us.test" }));
  for (const [at, authority] of ["us.test", "ap.test", "us.test", "localhost", "us.test"].entries())
    client.send(
      headers(2 * at + 1).of(
        [
          [":method", "GET"],
          [":scheme", "https"],
          [":path", `/row/${at}`],
          [":authority", authority],
        ],
        "end",
      ),
    );
  await client.until("five answers", () => client.count(/^HEADERS \d+ :status/) === 5);
  const statuses = client.heard.flatMap(
    (line) => /^HEADERS (\d+) :status=(\d+)/.exec(line)?.slice(1).join("=") ?? [],
  );
  // "localhost" is the name of no cluster, so it selects the cluster of the connection, which is `us`.
  assert.equal(statuses.toSorted(), ["1=200", "3=421", "5=200", "7=200", "9=200"]);
  assert.equal(seenBy("/row/3"), [0, 1]);
  client.destroy();
});

test("a session that was opened at one cluster is resumed at neither (A47)", async () => {
  const { port, ca } = clusters.place;
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const first = await shake({ port, ca, servername: "us.test", maxVersion });
    const tickets: Buffer[] = [];
    first.on("session", (ticket: Buffer) => tickets.push(ticket));
    first.write("GET /first HTTP/1.1\r\nHost: us.test\r\n\r\n");
    await new RawPeer(first).expect("/first");
    const last = first.getSession();
    if (last !== undefined) tickets.push(last);
    first.destroy();
    for (const [at, session] of tickets.entries()) {
      const path = `/again/${maxVersion}/${at}`;
      const again = await shake({ port, ca, servername: "us.test", maxVersion, session });
      again.write(`GET ${path} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n`);
      await new RawPeer(again).expect(path);
      assert.equal(seenBy(path), [0, 1], path);
      again.destroy();
    }
  }
});

test.run();
