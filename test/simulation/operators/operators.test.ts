/**
 * Operators' mistakes between the faults of apiservers, and planted faults that the scene must find. A whole day:
 * node test/simulation/run.ts --scene operators --hours 24.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import type { Mutation } from "../mutated.ts";
import { figureOf } from "./figure.ts";
import { loadOperators } from "./load.ts";
import { mistakes } from "./mistakes.ts";
import type { OperatorsOptions } from "./scene.ts";

const test = suite("simulation/operators");

const seeds = (process.env["OPERATOR_SEEDS"] ?? "1,2")
  .split(",")
  .filter((one) => one !== "")
  .map(Number);
const short: OperatorsOptions = { nodes: 4, seed: 1, hours: 2, mistakesPerHour: 12, tell: () => {} };

for (const seed of seeds)
  test(`seed ${seed}: in two hours, each mistake is named and its end told, and no client notices one`, async () => {
    const Operators = await loadOperators();
    const played = await new Operators({ ...short, seed }).play();
    figure(`seed ${seed}: ${figureOf(played)}`);
    assert.equal(played.problems, []);
    assert.is(played.watches, 40);
    assert.is(played.drifts, 1);
    // A run without moves, reads and requests to a backend with other flags would prove little.
    const most = { moves: 50, "reads: 200": 100, "requests to a backend that has drifted": 10 };
    for (const [what, least] of Object.entries(most))
      assert.ok((played.counts.get(what) ?? 0) >= least, `${what}: ${played.counts.get(what)}`);
  });

type Planted = {
  readonly name: string;
  readonly mutations: readonly Mutation[];
  /** The mistake that shows the fault; "": a change of flags. */
  readonly mistake: string;
  /** Part of the problem that must be found. */
  readonly found: RegExp;
};

const planted: readonly Planted[] = [
  {
    name: "a pair that a canary refuses is taken",
    mutations: [
      {
        file: "proxy/tls/credentials.ts",
        find: "if (refusal !== undefined) return unsuitable(pair, refusal.problem);",
        replace: "if (refusal !== undefined) return undefined;",
      },
    ],
    mistake: "a front-proxy pair: of a name that is not allowed",
    found: /not named/,
  },
  {
    name: "a pair that no backend has proven asserts identities",
    mutations: [
      {
        file: "proxy/tls/credentials.ts",
        find: "if (refusal !== undefined) return unsuitable(pair, refusal.problem);",
        replace: "if (refusal !== undefined) return undefined;",
      },
      {
        file: "proxy/tls/credentials.ts",
        find: 'this.#all[trust].proofOf(backend).verdict === "proven";',
        replace: "trust !== undefined && backend !== undefined;",
      },
    ],
    mistake: "a front-proxy pair: an administrator's",
    found: /was asked with Bearer kubernetes-admin/,
  },
  {
    name: "no canary is sent again",
    mutations: [
      {
        file: "upstream/identity/identity-proof.ts",
        find: "provenMs = 3_600_000",
        replace: "provenMs = 1e9",
      },
    ],
    mistake: "",
    found: /no longer names the front proxy: not named/,
  },
  {
    name: "the incident of a bad configuration does not end",
    mutations: [
      {
        file: "ops/incidents/findings.ts",
        find: 'ended("config-refused", file, "The configuration was loaded")',
        replace: 'ended("discovery-failed", file, "The configuration was loaded")',
      },
    ],
    mistake: "a bad configuration 1",
    found: /its end is not told/,
  },
  {
    name: "an empty discovery is taken",
    mutations: [
      {
        file: "ops/discovery/discovered.ts",
        find: 'if (byName.size === 0) return refused("no backends at all");',
        replace: "",
      },
    ],
    mistake: "a discovery file: an empty list",
    found: /not named/,
  },
  {
    name: "a CA that verifies no backend is taken",
    mutations: [
      {
        file: "proxy/cluster/backend-set.ts",
        find: "prove: (ca) => proveCaBundle(ca, of.set()?.ready ?? [], clock),",
        replace: "prove: () => Promise.resolve(proveCaBundle && clock && undefined),",
      },
    ],
    mistake: "a CA of the backends: of another cluster",
    found: /of another cluster: not named/,
  },
];

for (const { name, mutations, mistake, found } of planted) {
  test(`it is seen that ${name}`, async () => {
    const Operators = await loadOperators(mutations);
    const hasFaults = mistake === "";
    const made = mistakes.filter((one) => one.name === mistake);
    const options = { ...short, nodes: 2, hours: hasFaults ? 1 : 0.1, mistakesPerHour: hasFaults ? 0 : 1 };
    // Real sockets change the order of some steps, so one seed does not always show the fault.
    let problems: Awaited<ReturnType<InstanceType<typeof Operators>["play"]>>["problems"] = [];
    for (let seed = 1; seed <= 6 && !problems.some(({ what }) => found.test(what)); seed += 1)
      ({ problems } = await new Operators({ ...options, seed, hasFaults, mistakes: made }).play());
    figure(
      `${name}: ${problems
        .map(({ what }) => what)
        .join("; ")
        .slice(0, 300)}`,
    );
    assert.ok(
      problems.some(({ what }) => found.test(what)),
      JSON.stringify(problems),
    );
  });
}

test.run();
