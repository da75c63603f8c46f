import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sliceLimits } from "../../../../src/base/slices.ts";
import { watchDetail, watchListing } from "../../../../src/ops/admin/api/watch-listing.ts";
import { pageOf } from "../../../../src/ops/admin/http/listing.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { Caller } from "../../../../src/ops/ledger/caller.ts";
import { noSubject } from "../../../../src/ops/ledger/subject.ts";
import type { Exchange } from "../../../../src/proxy/request/exchange.ts";
import { apiScene } from "../../../support/api-scene.ts";
import { countedClock, manualClock } from "../../../support/clock.ts";
import { bearer, PlayedPath } from "../../../support/path.ts";

const test = suite("ops/admin/api/watch-listing");

test("a watch is listed with its client, its backend and where it has been", async () => {
  const { items } = apiScene();
  const [watch, ...rest] = await items("watches");
  assert.is(rest.length, 0);
  const { client, agent, subject, pod, resource, state, session, resourceVersion, moves, backend, events } =
    watch ?? {};
  assert.equal(
    [client, agent, subject, pod],
    ["10.0.0.9", "manager", "system:serviceaccount:n:web", "n/web-0"],
  );
  assert.equal([resource, state, session], ["/configmaps", "live", "streaming"]);
  assert.equal([resourceVersion, moves, events], ["9", 1, 2]);
  assert.ok(backend === "a" || backend === "b");
});

/** Returns 50,000 open requests, of which every tenth is no watch. Calls `visited` before each is read. */
function manyLive(visited: (number: number) => void): readonly Exchange[] {
  const callers = Array.from(
    { length: 500 },
    (_, at) => new Caller({ subject: noSubject, agent: "kubelet", address: `10.0.0.${at}` }, 0),
  );
  return Array.from({ length: 50_000 }, (_, at) => {
    const context = {
      kind: at % 10 === 0 ? "plain" : "watch",
      at,
      auditId: `audit-${at}`,
      resource: at % 2 === 0 ? "/pods" : "apps/deployments",
      caller: callers[at % callers.length],
      client: { port: at, alpn: "h2" },
      target: "",
      fields: [],
    };
    return {
      backend: at % 3 === 0 ? "cp-1" : "cp-2",
      isAnswered: true,
      sentBytes: 0,
      queuedBytes: 0,
      get context() {
        visited(at);
        return context;
      },
    } as unknown as Exchange;
  });
}

test("no loop turn looks at more than one slice of 50,000 watches: grouped, searched, or one of them", async () => {
  const clock = countedClock();
  const times = timesOf(clock);
  const perTurn = new Map<number, Set<number>>();
  const live = manyLive((at) => {
    const seen = perTurn.get(clock.turns) ?? new Set();
    perTurn.set(clock.turns, seen.add(at));
  });
  const list = watchListing(() => live, times);
  const matching = (query: string) => async (): Promise<unknown> => {
    const page = await pageOf(list, query, clock);
    return typeof page === "string" ? page : page["matching"];
  };
  const last = async (): Promise<unknown> =>
    (await watchDetail(live, "audit-49999", { clock, times }))?.["port"];
  for (const [read, expected] of [
    [matching("group=resource&sort=-idleMs&limit=50"), 45_000],
    [matching("group=client&sort=-idleMs&limit=50"), 45_000],
    [matching("group=backend&sort=-idleMs&limit=50&q=pods"), 20_000],
    [last, 49_999],
  ] as const) {
    perTurn.clear();
    const begun = read();
    clock.turn();
    assert.is(await begun, expected);
    const most = Math.max(...Array.from(perTurn.values(), ({ size }) => size));
    // The last turn also reads the 50 rows of the page again, to show them, so it may exceed a slice by that number.
    assert.ok(most <= sliceLimits.sliceEntries + 50, `${most} in one turn`);
    assert.ok(perTurn.size >= 50_000 / sliceLimits.sliceEntries, `${perTurn.size} turns`);
  }
});

test("a watch that ends or begins between two slices changes neither the number nor the rows of the list", async () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(1000);
  const client = path.client();
  const open = (): unknown => client.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer("t")]);
  for (let count = 0; count < 3; count += 1) open();
  path.clock.advance(200);
  const slices = manualClock();
  // On this clock, each entry takes as long as a whole slice.
  const clock = { ...slices, now: (): number => (slices.stall(sliceLimits.sliceMs), slices.now()) };
  const { exchanges } = path;
  assert.is([...exchanges.live].length, 3);
  const begun = pageOf(
    watchListing(() => exchanges.live, timesOf(path.clock)),
    "",
    clock,
  );
  [...exchanges.live][2]?.cut();
  path.clock.advance(200);
  assert.is([...exchanges.live].length, 2);
  open();
  open();
  path.clock.advance(200);
  slices.turn();
  const page = await begun;
  if (typeof page === "string") throw new Error(page);
  assert.is(page["total"], 3);
  assert.is(page["matching"], 3);
  assert.is((page["items"] as unknown[]).length, 3);
});

test.run();
