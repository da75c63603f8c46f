/**
 * Two hours of 60 nodes with every kind of fault. A whole day of 1,000 nodes:
 * node --expose-gc test/simulation/run.ts --scene fleet --nodes 1000 --hours 24.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { loadMutated, type Mutation } from "../mutated.ts";
import { Day, type DayOptions } from "../watches/day.ts";
import { dayFaults } from "../watches/day-faults.ts";

const test = suite("simulation/long/day");

const short: DayOptions = { nodes: 20, seed: 1, hours: 2, faultsPerHour: 1, isStrict: true, tell: () => {} };

test("in two hours with every fault no client notices one, loads become even again, and nothing grows", () => {
  const faultsPerHour = Math.ceil(dayFaults.length / 2);
  const played = new Day({ ...short, nodes: 60, faultsPerHour }).play();
  const { problems, counts, watches, faults, evenMs, peakAskedPerSecond } = played;
  figure(
    `${faults} faults, ${counts.get("events")} events, ${counts.get("moves")} moves, ` +
      `at most ${peakAskedPerSecond} requests a second, even loads after ${Math.round(evenMs / 1_000)} s at most`,
  );
  assert.equal(problems, []);
  assert.is(watches, 600);
  for (const { name } of dayFaults) assert.ok(counts.has(`fault: ${name}`), name);
  // A run in which no watch moves or ends would prove little.
  assert.ok((counts.get("moves") ?? 0) > 5_000, "too few moves");
  assert.ok((counts.get("end: its own timeout") ?? 0) > 5_000, "too few watches ended");
});

const defects: readonly (readonly [name: string, table: string, mutation: Mutation])[] = [
  [
    "an ended watch stays in the table of its resource",
    "WatchesByResource.#groups[].part",
    {
      file: "watch/migration/migrations.ts",
      find: "(isWhole ? group.whole : group.part).delete(watch);",
      replace: "",
    },
  ],
];

for (const [name, table, mutation] of defects) {
  test(`it is seen that ${name}`, async () => {
    const mutated = await loadMutated<{ readonly Day: typeof Day }>("watches/day.ts", [mutation]);
    const { problems } = new mutated.Day(short).play();
    const grown = problems.filter(({ validator }) => validator === "growth").map(({ what }) => what);
    figure(`${name}: ${grown.join("; ")}`);
    assert.ok(
      grown.some((what) => what.includes(table)),
      JSON.stringify(problems),
    );
  });
}

test.run();
