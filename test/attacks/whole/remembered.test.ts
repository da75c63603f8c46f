/**
 * Everything that the proxy remembers for a time: identities, paths and names. It must keep only the name, not the 64
 * KiB of text that a client has put around it.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf, times } from "../../support/attack.ts";
import {
  continued,
  type Fields,
  type Frame,
  headers,
  settings,
  windowUpdate,
} from "../../support/h2-frames.ts";
import { jwt } from "../../support/jwt.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/remembered");

const scene = sceneOf(test, () => ({ extra: "logging: {accessLog: All}\n" }));

/** Returns 60,000 bytes of text that differ for each `word`. */
const long = (word: string): string => word.padEnd(60_000, `${word}-`);

/** This many texts are 36 MB, which must not stay in memory. */
const count = 600;
const attacks: Record<string, (at: number) => readonly [path: string, ...fields: Fields]> = {
  "lists of resources with endless names": (at) => [`/apis/example.com/v1/${long(`resource-${at}`)}`],
  "lists with endless queries": (at) => [
    `/apis/networking.k8s.io/v1/networkpolicies?x=${long(`query-${at}`)}`,
  ],
  "lists by programs with endless names": (at) => [
    "/api/v1/pods",
    ["user-agent", long(`controller-manager-${at}/v1`)],
  ],
  "audit ids without end": (at) => ["/api/v1/pods", ["audit-id", long(`audit-${at}`)]],
  "tokens of users with endless names": (at) => {
    const sub = `user-${at}`.padEnd(11_000, `${at}-`);
    return ["/api/v1/pods", ["authorization", `Bearer ${jwt({ sub })}`]];
  },
};

function request(id: number, [path, ...fields]: readonly [path: string, ...fields: Fields]): Frame[] {
  return continued(headers(id).get(path, ...fields), 16_000, 16_000, 16_000);
}

/** Sends ten requests at a time, so that the bystander, which runs in this process, is not delayed. */
async function ask(
  most: number,
  of: (at: number) => readonly [path: string, ...fields: Fields],
): Promise<void> {
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 1 << 20 }));
  client.send(windowUpdate(0, 1 << 26));
  for (let first = 0; first < most; first += 10) {
    const ids = times(10, (at) => 2 * (first + at) + 1);
    client.send(...ids.map((id) => request(id, of((id - 1) / 2))));
    await client.until("the answers", () => ids.every((id) => (client.bodies.get(id) ?? 0) > 0));
    await pause(20);
  }
  client.destroy();
}

// This test runs first, while its client is still on the first page of the list.
test("the honest twin: a program with a name as it is, and its audit id, is told of by that name", async () => {
  const client = await scene.attacker();
  const agent = "kube-controller-manager/v1.36.1 (linux/amd64) kubernetes/abcdef0/leader-election";
  const id = "0b1c2d3e-aaaa-4bbb-8ccc-0123456789ab";
  client.send(headers(1).get("/api/v1/pods", ["user-agent", agent], ["audit-id", id]));
  await client.expect(/^DATA 1 .*END/);
  const clients = await (
    await fetch(`http://${scene.proxy.place.apiAddress}/api/v1/clients?limit=500`)
  ).text();
  assert.match(clients, "kube-controller-manager/leader-election");
});

for (const [what, of] of Object.entries(attacks))
  test(`${what} are not remembered whole`, async () => {
    // The first requests allocate memory that depends on their number and not on their length, so they are part of the
    // baseline.
    await ask(50, (at) => of(at + count));
    await scene.measureFromHere();
    const { heapBytes } = await scene.gone();
    await ask(count, of);
    await scene.settledLive(heapBytes);
    const after = await scene.proxy.state();
    const grownMB = ((after.heapBytes - heapBytes) / 1e6).toFixed(1);
    process.stdout.write(`figure: ${what}: ${grownMB} MB more are live\n`);
  });

test("heads of 110 KB are not remembered for clients that are idle, over HTTP/1.1 or HTTP/2", async () => {
  const fields = (at: number): Fields =>
    ["user-agent", "x-other"].map((name) => [name, `${name}-${at}-`.padEnd(30_000, `${at}-`)] as const);
  const word = (at: number): string => `Bearer ${`t-${at}-`.padEnd(50_000, "t")}`;
  const peers: RawPeer[] = [];
  const clients: RawH2[] = [];
  const idle = async (first: number, end: number): Promise<void> => {
    for (let at = first; at < end; at += 1) {
      const peer = await connectRaw(scene.proxy.place.plainPort);
      const own = [...fields(at), ["authorization", word(at)] as const].map(
        ([name, value]) => `${name}: ${value}`,
      );
      peer.send(["GET /api HTTP/1.1", "Host: api", ...own, "", ""].join("\r\n"));
      await peer.expect("/api");
      const client = await scene.attacker();
      const asked = headers(1).get("/api", ...fields(at), ["authorization", word(at)]);
      client.send(continued(asked, ...Array<number>(6).fill(16_000)));
      await client.expect(/^DATA 1 .*END/);
      peers.push(peer);
      clients.push(client);
    }
  };
  await idle(0, 20);
  const before = await scene.proxy.state();
  await idle(20, 170);
  await pause(500);
  const after = await scene.proxy.state();
  const eachKiB = (after.heapBytes - before.heapBytes) / 300 / 1024;
  process.stdout.write(`\nfigure: a client that is idle takes ${eachKiB.toFixed(1)} KiB\n`);
  assert.ok(eachKiB < 60, `${eachKiB} KiB are kept for each`);
  for (const { socket } of peers) socket.destroy();
  for (const client of clients) client.destroy();
  await scene.gone();
  await scene.measureFromHere();
});

test.run();
