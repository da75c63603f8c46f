import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { explain } from "../../../../src/ops/cli/client/explain.ts";
import { get } from "../../../../src/ops/cli/client/get.ts";
import { limit } from "../../../../src/ops/cli/client/limit.ts";
import { operate } from "../../../../src/ops/cli/client/operate.ts";
import { status } from "../../../../src/ops/cli/client/status.ts";
import { KeptScreen } from "../../../support/api-server.ts";
import { type ReplicaPair, startPair } from "../../../support/replica-pair.ts";

const test = suite("ops/cli/client/replicas");
let pair: ReplicaPair;
let here: string;
let there: string;

test.before(async () => {
  pair = await startPair();
  here = pair.here.running.apiAddress;
  there = pair.there.running.apiAddress;
});

test.after(() => pair.stop());

type Command = (args: string[], screen: KeptScreen) => Promise<number>;

async function ran(command: Command, ...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: here });
  return Object.assign(screen, { code: await command(args, screen) });
}

test("get prints the rows of all replicas in one table, with the replica first", async () => {
  const { out, code } = await ran(get, "backends", "--all-replicas");
  assert.is(code, 0);
  const [heads = "", ...rows] = out.trimEnd().split("\n");
  assert.match(heads, /^REPLICA +BACKEND +STATE/);
  assert.equal(new Set(rows.map((row) => row.split(/ +/)[0])), new Set([here, there]));
  const { out: text } = await ran(get, "backends", "--all-replicas", "-o", "json");
  const list = JSON.parse(text);
  assert.equal([list.kind, list.total, list.unreachable], ["BackendList", 2, []]);
  assert.equal(new Set(list.items.map((row: { replica: string }) => row.replica)), new Set([here, there]));
  const replicas = await ran(get, "replicas");
  assert.match(replicas.out, new RegExp(`^${here} +✓ live .*✓`, "m"));
});

test("get, status and explain show one replica, by its name; another name is an error that lists the names", async () => {
  const set = await ran(limit, "agent=there", "--rate", "1/s", "--replica", there);
  assert.is(set.code, 0, set.complaints);
  assert.match((await ran(get, "limits", "--replica", there)).out, "agent=there, 1/s");
  assert.match((await ran(get, "limits", "--replica", here)).complaints, "No limits found");
  const wide = await ran(get, "limits", "--replica", there, "-o", "wide");
  assert.match(wide.out, /\S+ \(watchkeeper CLI\) at 127\.0\.0\.1 at 127\.0\.0\.1/);
  const explained = await ran(explain, "operator-limit", "--replica", there);
  assert.match(explained.out, /^#\d+ {2}operator-limit/);
  const one = await ran(status, "--replica", there);
  assert.match(one.out, /operator-limit limit 1, active/);
  assert.match((await ran(status, "--replica", here)).out, "no active incidents");
  const unknown = await ran(get, "backends", "--replica", "wk-9");
  assert.is(unknown.code, 1);
  assert.match(
    unknown.complaints,
    `There is no replica "wk-9": there is ${[here, there].toSorted().join(", ")}`,
  );
  assert.is((await ran(get, "backends", "--replica", here, "--all-replicas")).code, 2);
});

test("status and explain of all name the replica of each incident, and how to ask for more", async () => {
  const all = await ran(status, "--all-replicas");
  assert.is(all.code, 1);
  assert.match(all.out, new RegExp(`^${there} +✓ live .* \\d/1 `, "m"));
  assert.match(
    all.out,
    new RegExp(`operator-limit limit 1 at ${there}, active[^]*explain \\d+ --replica ${there}`),
  );
  const json = JSON.parse((await ran(status, "--all-replicas", "-o", "json")).out);
  assert.is(json.kind, "StatusList");
  assert.is(json.items.find(({ replica }: { replica: string }) => replica === here).incidents.matching, 0);
  const explained = await ran(explain, "operator-limit", "--all-replicas");
  assert.is(explained.code, 0);
  assert.match(explained.out, `REPLICA ${there}\n#`);
  assert.match(explained.complaints, `${here}: No incidents`);
  const list = JSON.parse((await ran(explain, "--all-replicas", "-o", "json")).out);
  assert.equal([list.kind, list.items[0].replica], ["IncidentList", there]);
  assert.is((await ran(explain, "backend-dead", "--all-replicas")).code, 1);
  assert.is((await ran(explain, "42", "--all-replicas")).code, 2);
});

test("explain without any incident is 0: all is well; a kind that no incident has is 1", async () => {
  const { code, out, complaints } = await ran(explain);
  assert.equal([code, out, complaints], [0, "", "No incidents\n"]);
  assert.is((await ran(explain, "overload")).code, 1);
});

test("a limit for all replicas is set at each, which share it, and ended at one by its name", async () => {
  const ended = await ran((args, screen) => operate("unlimit", args, screen), "1", "--replica", there);
  assert.match(ended.out, "limit 1 has ended");
  const set = await ran(limit, "agent=ci", "--rate", "10/s", "--all-replicas");
  assert.is(set.code, 0, set.complaints);
  assert.match(set.out, `${here}: limit 1 is in force until`);
  assert.match(set.out, `${there}: limit 2 is in force until`);
  assert.match(set.out, `agent=ci, 10/s, shared by 2 replicas; watchkeeper unlimit 1 --replica ${here}\n`);
  assert.match(set.out, `watchkeeper unlimit 2 --replica ${there}\n`);
  assert.match(set.out, "\n2 of 2 replicas have the limit\n");
});

test("a replica that does not confirm a limit in time may have it", async () => {
  const server = createServer(({ method }, response) => {
    const list = { kind: "ReplicaList", total: 1, matching: 1, items: [{ name: "wk-2", state: "live" }] };
    const failure = { kind: "Failure", message: "Replica wk-2 does not answer: no answer in 8000 ms" };
    response.writeHead(method === "GET" ? 200 : 502).end(JSON.stringify(method === "GET" ? list : failure));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { complaints, code } = await ran(
    limit,
    "agent=x",
    "--rate",
    "1/s",
    "--all-replicas",
    "--admin",
    `127.0.0.1:${port}`,
  );
  server.close();
  assert.is(code, 3);
  assert.match(
    complaints,
    /^wk-2: has not confirmed the limit, which may be in force there: .*no answer in 8000 ms/,
  );
});

test("a replica that does not answer is a line, and the exit code is that of a lost proxy", async () => {
  await pair.list([here, there, "127.0.0.1:1"]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const list = await ran(get, "backends", "--all-replicas");
  assert.is(list.code, 3);
  assert.match(list.out, new RegExp(`^${there} `, "m"));
  assert.match(
    list.complaints,
    /^127\.0\.0\.1:1: Replica 127\.0\.0\.1:1 has never answered: .*ECONNREFUSED/m,
  );
  const all = await ran(status, "--all-replicas");
  assert.is(all.code, 3);
  assert.match(all.out, /^127\.0\.0\.1:1 +\? unknown .*never answered/m);
  assert.is((await ran(status, "--replica", "127.0.0.1:1")).code, 3);
  const set = await ran(limit, "agent=x", "--rate", "10/s", "--all-replicas");
  assert.is(set.code, 3);
  assert.match(set.out, "2 of 3 replicas have the limit");
  await pair.there.stop();
  const lost = await ran(get, "backends", "--replica", there);
  assert.is(lost.code, 3, lost.complaints);
  assert.match(lost.complaints, `Replica ${there} does not answer`);
});

test.run();
