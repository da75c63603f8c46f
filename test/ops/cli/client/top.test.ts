import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Clock } from "../../../../src/base/clock.ts";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { Journal } from "../../../../src/events/journal.ts";
import type { Admin } from "../../../../src/ops/admin/server/server.ts";
import { startApi } from "../../../../src/ops/admin/server/server.ts";
import { top } from "../../../../src/ops/cli/client/top.ts";
import { KeptScreen } from "../../../support/api-server.ts";

const test = suite("ops/cli/client/top");
let api: Admin;
let clientsAt = listAt;
/** The number of polls by `top` so far. Each poll finds more requests than the previous one. */
let looks = 0;

/**
 * The list of clients at poll number `look`: `busy` sends ten requests a second, `idle` sends none, and `new` appears
 * at the second poll.
 */
function listAt(look: number): object {
  const row = (agent: string, requests: number): object => ({ agent, client: "10.0.0.7", requests });
  const items = [row("busy", 1000 + 20 * look), row("idle", 90_000)];
  if (look > 0) items.push(row("new\x1b[2J", 6));
  return { kind: "ClientList", total: items.length, matching: items.length, items };
}

test.before.each(async () => {
  looks = 0;
  clientsAt = listAt;
  const figures = (): object => ({
    version: "0.1.0",
    name: "prod",
    uptimeMs: 60_000 + looks * 2000,
    requests: { "2xx": 500 + 40 * looks, "5xx": looks },
    watchEvents: 10 * looks,
    cpuMs: 1000 * looks,
  });
  const started = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal: new Journal(wallClock),
    routes: (path) => () => {
      const body = path.endsWith("/stats") ? figures() : clientsAt(looks);
      return { status: 200, type: "application/json", text: JSON.stringify(body) };
    },
  });
  if (started instanceof Failure) throw new Error(started.message);
  api = started;
});

test.after.each(() => api.stop());

/**
 * At poll number `look`: quiet rows that differ from other rows in one field only, and a client with connections in two
 * workers, of which the newer one sends five requests a second.
 */
function similarAt(look: number): object {
  const row = (requests: number, fields: object): object => ({
    agent: "curl",
    client: "10.0.0.7",
    requests,
    ...fields,
  });
  const items = [
    row(900, { subjectSource: "bearer" }),
    row(20, { subjectSource: "none" }),
    row(800, { cluster: "eu", subjectSource: "none" }),
    row(700, { pod: "n/p", since: "2026-11-27T09:05:32.100Z" }),
    row(60 + 10 * look, { pod: "n/p", since: `2026-11-27T09:07:32.10${look}Z` }),
  ];
  return { kind: "ClientList", total: items.length, matching: items.length, items };
}

/** A clock that does not wait. After `turns` polls, the proxy stops. */
function hasty(turns: number): Clock {
  return {
    ...wallClock,
    after(_ms, run) {
      looks += 1;
      void (looks > turns ? api.stop() : Promise.resolve()).then(run);
      return () => {};
    },
  };
}

async function asked(
  args: string[],
  clock: Clock,
  lines = 0,
): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: api.address });
  screen.lines = lines;
  return Object.assign(screen, { code: await top(args, screen, clock) });
}

test("the fastest come first, by what they did between two looks", async () => {
  const { out, code } = await asked(["--once"], hasty(9));
  assert.is(code, 0);
  assert.match(out, "requests/s: 2xx 20, 5xx 0.5   events/s: 5.0   CPU 50%");
  const rows = out.trimEnd().split("\n").slice(3);
  assert.equal(
    rows.map((row) => row.split(/ +/).slice(0, 2)),
    [
      ["10.0", "busy"],
      ["3.0", "new\\u{1b}[2J"],
      ["0.0", "idle"],
    ],
  );
});

test("rows that differ in one field only do not get each other's rate", async () => {
  clientsAt = similarAt;
  const { out } = await asked(["-o", "json"], hasty(9));
  const rated: { requests: number; perSecond: number }[] = JSON.parse(out).items;
  assert.equal(
    rated.map(({ requests, perSecond }) => [requests, perSecond]),
    [
      [70, 5],
      [900, 0],
      [20, 0],
      [800, 0],
      [700, 0],
    ],
  );
});

test("a file or a pipe is written once, a terminal again and again until the server no longer answers", async () => {
  assert.is((await asked([], hasty(9))).code, 0);
  looks = 0;
  const { out, complaints, code } = await asked(["--rows", "50"], hasty(3), 6);
  assert.is(out.split("\x1b[2J").length - 1, 3);
  assert.match(complaints, "Cannot reach the proxy");
  assert.is(code, 3);
  const last = out.split("\x1b[2J").at(-1) ?? "";
  assert.ok(last.trimEnd().split("\n").length <= 6, "it fits the terminal");
});

test("as JSON each row has its rate; a wrong number is a usage error", async () => {
  const { out } = await asked(["clients", "-o", "json", "--rows", "1"], hasty(9));
  assert.equal(
    JSON.parse(out).items.map((row: object) => "perSecond" in row && row.perSecond),
    [10],
  );
  assert.is((await asked(["--interval", "0"], hasty(9))).code, 2);
  assert.is((await asked(["watches", "clients"], hasty(9))).code, 2);
});

test.run();
