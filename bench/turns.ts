/**
 * node bench/turns.ts [watches]
 *
 * Measures the longest turn of the event loop in each task that visits 50,000 watches (src/base/slices.ts). The watches
 * are real, and the backends are simulated. Ends with `figure:` lines. The exit code is 1 if a turn takes too long.
 * Garbage collections count as part of a turn.
 */

import type { Clock } from "../src/base/clock.ts";
import { Failure } from "../src/base/failure.ts";
import { inSlices } from "../src/base/slices.ts";
import { type BackendSources, backendListing } from "../src/ops/admin/api/backend-listing.ts";
import { watchListing } from "../src/ops/admin/api/watch-listing.ts";
import { pageOf } from "../src/ops/admin/http/listing.ts";
import { type Times, timesOf } from "../src/ops/admin/http/times.ts";
import { Balance } from "../src/proxy/balance/balance.ts";
import { planMoves } from "../src/proxy/balance/plan-moves.ts";
import { Operations } from "../src/proxy/cluster/operations.ts";
import { HeapLoad, LoadShedding } from "../src/proxy/overload/load-shedding.ts";
import { poolKey } from "../src/upstream/pool/pool-key.ts";
import { refuse, type Waiter } from "../src/upstream/pool/shard.ts";
import { BookmarkRefresher } from "../src/watch/detectors/bookmark-refresh.ts";
import { HungWatchDetector } from "../src/watch/detectors/hung-watch.ts";
import { bearer, PlayedPath } from "../test/support/path.ts";
import { linesOf, ok } from "../test/support/watch-path.ts";
import { median } from "./report.ts";

const mostMs = 10;
const each = 100;
const rounds = 9;
const clients = Number(process.argv[2] ?? 50_000) / each;
const path = new PlayedPath(["a", "b"], { down: ["b"] });
path.clock.advance(1000);
for (let count = 0; count < clients; count += 1) {
  const client = path.client();
  for (let watch = 0; watch < each; watch += 1)
    client.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer(`t-${count}`)]);
  path.clock.advance(200);
  for (const asked of path.backend("a").asked.splice(0)) {
    asked.side?.sendHeaders(ok, false);
    asked.say(linesOf("+8a"));
  }
}
path.clock.advance(1000);
const { exchanges, migrations, pools, journal } = path;

/** A clock with real time. Callbacks wait in `turns` and run one at a time, each as a turn of the event loop. */
let turns: (() => void)[] = [];
const clock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(_ms, run) {
    turns.push(run);
    return () => {
      turns = turns.filter((one) => one !== run);
    };
  },
  soon: (run) => void turns.push(run),
};

/** Calls `begin`, and runs all turns that follow from it. Returns the duration of each turn in ms. */
function turnsOf(begin: () => void): readonly number[] {
  const took: number[] = [];
  turns = [begin];
  for (let next = turns.shift(); next !== undefined && took.length < 1000; next = turns.shift()) {
    const at = performance.now();
    next();
    took.push(performance.now() - at);
  }
  return took;
}

const late: string[] = [];
function measure(name: string, begin: () => void): void {
  const all = Array.from({ length: rounds }, () => turnsOf(begin));
  const longest = all.map((took) => Math.max(...took));
  const sums = all.map((took) => took.reduce((sum, ms) => sum + ms, 0));
  const isIn = median(longest) <= mostMs;
  if (!isIn) late.push(name);
  const range = `${median(longest).toFixed(1)} ms (at most ${Math.max(...longest).toFixed(1)})`;
  process.stdout.write(
    `figure: ${isIn ? "✓" : "✗"} ${name}: longest turn ${range}, ${all[0]?.length} turns, ${median(sums).toFixed(0)} ms together\n`,
  );
}

/** Runs the first check of an object that checks periodically. */
function firstLook(looks: { start(): void; stop(): void }): void {
  looks.start();
  const look = turns.shift();
  look?.();
  // Discards the next check instead of running it.
  turns.shift();
}

process.stdout.write(`figure: ${exchanges.active("watch")} watches\n`);
const shares = {
  of: (): ReadonlyMap<string, number> => new Map(["a", "b"].map((name) => [name, 1])),
  mayGet: () => true,
  isShielded: () => false,
  isNear: () => true,
  measured: () => {},
};
measure("hung-watch", () => firstLook(new HungWatchDetector(clock, exchanges)));
measure("balance", () => firstLook(new Balance({ clock, exchanges, migrations, shares })));
const refresher = new BookmarkRefresher({ clock, exchanges, migrations, pools, journal });
measure("refreshes after a backend came back", () => refresher.returned("b"));
measure("counters of a scrape", () => void [exchanges.watched, exchanges.active("watch")]);
measure("copy of all that is open", () => void exchanges.live);
const loads = exchanges.live.map((exchange) => ({
  client: exchange,
  backend: "a",
  load: 1,
  isMovable: true,
}));
measure("who moves, of 50,000 clients", () => void planMoves(loads, shares.of(), 500));
measure("largest holders of bytes", () => void exchanges.holders);
const operations = new Operations({
  journal,
  paths: () => [path],
  limits: path.operatorLimits,
  reload: undefined,
});
measure("a watch that an operator moves", () => void operations.move("none", { by: "bench", reason: "" }));
const sources = { clock, backends: () => [], live: () => exchanges.live } as unknown as BackendSources;
measure("rows of the backends' page", () => void backendListing(sources, {} as Times).rows());
for (const query of [
  "group=resource&sort=-idleMs&limit=50",
  "group=client&sort=-idleMs&limit=50",
  "group=resource&sort=-idleMs&limit=50&q=no-such-watch",
  "group=auditId&limit=500",
])
  measure(
    `/api/v1/watches?${query}`,
    () =>
      void pageOf(
        watchListing(() => exchanges.live, timesOf(clock)),
        query,
        clock,
      ),
  );

// Each of the following tasks permanently ends some of the watches in each round.
const key = poolKey("proven", "plain");
measure("10,000 that wait for a connection of a dead backend", () => {
  const client = path.client().downstream.client;
  const waiting = new Map<Waiter, number>();
  for (let count = 0; count < 10_000; count += 1)
    waiting.set(
      {
        key,
        rekey: () => key,
        ready() {},
        suspected() {},
        refused: () => void pools.keyFor({ trust: "proven", kind: "plain" }, client),
      },
      0,
    );
  refuse({ key, connections: [], waiting }, new Failure("backend-refused", "backend", "dead"), clock);
});
const overload = new LoadShedding({
  clock,
  journal,
  load: new HeapLoad(),
  idle: () => [],
  exchanges: () => exchanges.live,
  collect() {},
});
measure("who ends where memory is short", () => overload.look({ share: 1, residentBytes: 0 }));
measure("the rest of a cluster that is removed", () =>
  inSlices(clock, exchanges.live, (exchange) => exchange.cut()),
);
process.exit(late.length === 0 ? 0 : 1);
