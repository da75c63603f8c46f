/** Hostile answers of the servers that the proxy asks: each field × each type, and each way in which a body can end. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isIpAddress } from "../../../src/base/address.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { factsIn, replicaAnswer } from "../../../src/fleet/replicas/replica.ts";
import { accessIn, userIn } from "../../../src/ops/admin/authorization/reviews.ts";
import { kubernetesSource } from "../../../src/ops/discovery/discover.ts";
import { type Discovered, foundAt } from "../../../src/ops/discovery/discovered.ts";
import { Discovery } from "../../../src/ops/discovery/discovery.ts";
import { Reviewer } from "../../../src/ops/discovery/reviewer.ts";
import { AccountTransport, type Transport } from "../../../src/ops/discovery/transport.ts";
import { manualClock } from "../../support/clock.ts";
import { goodLeases, goodSlice } from "../../support/discoverable.ts";
import { testPki } from "../../support/pki.ts";
import { factsOf } from "../../support/replicas.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/answers");

const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);
process.on("unhandledRejection", note);
process.on("uncaughtException", note);
test.after(() => {
  process.off("unhandledRejection", note);
  process.off("uncaughtException", note);
});

const nested = (depth: number): unknown => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);

const values: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  -1,
  6443.5,
  1e308,
  "",
  "10.0.0.7",
  "kubernetes",
  "\u0000\u202e",
  "x".repeat(100_000),
  [],
  ["10.0.0.7"],
  [["10.0.0.7"]],
  [null],
  Array.from({ length: 70 }, () => "10.0.0.7"),
  Array.from({ length: 70 }, () => ({ addresses: ["10.0.0.7"] })),
  nested(10_000),
  {},
  { length: 3, 0: "10.0.0.7" },
  JSON.parse('{"__proto__":{"addresses":["10.0.0.7"]},"constructor":1,"toString":1}'),
];

/** Yields `good` with each of its fields and items replaced by each of `values`. */
function* variants(good: unknown): Generator {
  yield* values;
  if (typeof good !== "object" || good === null) return;
  for (const [key, inner] of Object.entries(good))
    for (const value of variants(inner)) {
      const copy: Record<string, unknown> | unknown[] = Array.isArray(good) ? [...good] : { ...good };
      Object.defineProperty(copy, key, { value, enumerable: true });
      yield copy;
    }
}

for (const [from, good] of [
  ["EndpointSlice", goodSlice],
  ["Lease", goodLeases],
] as const)
  test(`an answer of discovery by ${from} with any field of any type changes nothing or is taken whole`, async () => {
    const clock = manualClock();
    let answer: unknown = good;
    const transport: Transport = { own: "https://a", ask: () => Promise.resolve({ answer }), abort() {} };
    const source = kubernetesSource(from, transport, () => ({
      servers: [],
      caFile: "",
      serverName: undefined,
    }));
    let last: readonly Discovered[] = [foundAt("10.0.0.250", 6443)];
    const onChange = (found: readonly Discovered[]): void => void (last = found);
    const journal = new Journal(clock);
    const discovery = new Discovery({ clock, journal, source, intervalMs: 1000, found: last, onChange });
    discovery.start();
    let count = 0;
    for (answer of variants(good)) {
      count += 1;
      clock.advance(1000);
      // oxlint-disable-next-line no-await-in-loop
      await new Promise((resolve) => setImmediate(resolve));
      assert.ok(last.length > 0 && last.every(({ host }) => isIpAddress(host)), `answer ${count}`);
    }
    answer = good;
    clock.advance(10_000);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(discovery.found.length, 1);
    assert.ok(count > 200, `${count} answers`);
    assert.equal(unhandled, []);
    discovery.stop();
  });

test("a review's answer with any field of any type names the whole user, or none", () => {
  const user = { username: "alice", uid: "7", groups: ["dev"], extra: { scope: ["x"] } };
  for (const answer of variants({ status: { authenticated: true, audiences: ["a"], user } })) {
    const found = userIn(answer, ["a"]);
    if (found === undefined) continue;
    const { groups, extra } = found;
    assert.ok([...groups, ...Object.values(extra).flat()].every((text) => typeof text === "string"));
  }
  for (const answer of variants({ status: { allowed: true, denied: false, reason: "x" } }))
    assert.type(accessIn(answer).reason, "string");
  const mixed = { authenticated: true, user: { ...user, groups: ["dev", ["system:masters"]] } };
  assert.is(userIn({ status: mixed }, []), undefined);
});

test("a replica's answer with any field of any type is taken whole or not at all", () => {
  const good = replicaAnswer(factsOf(1, { clusters: ["eu"], activeIncidents: 1 }));
  for (const answer of variants(good)) {
    const facts = factsIn(answer);
    assert.ok(facts === undefined || facts.clusters.every((name) => typeof name === "string"));
  }
});

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-answers-"));
const caFile = join(directory, "ca.crt");
const servers: Server[] = [];
test.after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(directory, { recursive: true, force: true });
});

const json = { "content-type": "application/json" };
const whole = JSON.stringify(goodSlice);

/** Sends one byte each 10 ms. */
function trickle(response: ServerResponse, text: string): void {
  const timer = setInterval(() => response.write(text), 10);
  response.on("close", () => clearInterval(timer));
}

const bodies: readonly (readonly [string, RegExp, (response: ServerResponse) => void])[] = [
  [
    "cut off",
    /closed|ECONNRESET|Invalid EOF/,
    (response) => response.writeHead(200, json).write(whole.slice(0, 40), () => response.destroy()),
  ],
  [
    "shorter than its length",
    /content-length/,
    (response) => {
      response.writeHead(200, { ...json, "content-length": "9999" }).write(whole, () => response.destroy());
    },
  ],
  ["half of a JSON text", /not JSON/, (response) => response.writeHead(200, json).end(whole.slice(0, 40))],
  [
    "endless",
    /more than \d+ bytes/,
    (response) => {
      response.writeHead(200, json);
      const more = (): void =>
        void (response.destroyed || response.write("[".repeat(65_536), () => setImmediate(more)));
      more();
    },
  ],
  [
    "huge",
    /more than \d+ bytes/,
    (response) => response.writeHead(200, json).end(`"${"x".repeat(8_000_000)}"`),
  ],
  [
    "of nested lists",
    /not an object/,
    (response) => {
      response.writeHead(200, json).end(`${"[".repeat(130_000)}${"]".repeat(130_000)}`);
    },
  ],
  ["HTML", /not JSON/, (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>")],
  ["a Status", /answered 404/, (response) => response.writeHead(404, json).end('{"kind":"Status"}')],
  [
    "a redirect",
    /answered 302/,
    (response) => response.writeHead(302, { location: "https://127.0.0.1:1/" }).end(),
  ],
  [
    "gzip that was not asked for",
    /not JSON/,
    (response) => {
      response
        .writeHead(200, { ...json, "content-encoding": "gzip" })
        .end(Buffer.from([0x1f, 0x8b, 0, 0xff]));
    },
  ],
  ["a trickle of chunks", /no answer in \d+ ms/, (response) => trickle(response.writeHead(200, json), " ")],
  [
    "an endless head",
    /Headers Overflow|no answer/,
    (response) => {
      response.socket?.write("HTTP/1.1 200 OK\r\n");
      const { socket } = response;
      const timer = setInterval(() => socket?.write(`x-${"a".repeat(1000)}: 1\r\n`), 10);
      socket?.on("close", () => clearInterval(timer));
    },
  ],
];

test("an answer that is cut off, endless, huge, slow or no JSON is a Failure within its time", async () => {
  const { authority, serving } = await testPki();
  writeFileSync(caFile, authority.certificate);
  writeFileSync(join(directory, "token"), "good\n");
  await Promise.all(
    bodies.map(async ([name, told, answer]) => {
      const server = createServer({ cert: serving.certificate, key: serving.key }, (request, response) => {
        request.resume();
        response.on("error", () => {});
        answer(response);
      });
      servers.push(server);
      await new Promise<void>((resolve) => {
        server.listen(0, "127.0.0.1", resolve);
      });
      const { port } = server.address() as AddressInfo;
      const url = `https://127.0.0.1:${port}`;
      // The own server is the one that is asked last; port 1 refuses the connection.
      const access = () => ({ servers: [url], caFile, serverName: "kubernetes.default.svc" });
      const transport = new AccountTransport(access, directory);
      const outcome = await within(15_000, name, kubernetesSource("EndpointSlice", transport, access).ask());
      assert.match(outcome instanceof Failure ? outcome.message : "", told, name);
      const review = { kind: "TokenReview", path: "/r", body: {} } as const;
      const reviewed = await within(15_000, name, new Reviewer(transport, access).ask(review));
      assert.ok(reviewed instanceof Failure || userIn(reviewed.answer, []) === undefined, name);
    }),
  );
  assert.equal(unhandled, []);
});

test.run();
