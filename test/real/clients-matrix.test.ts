/**
 * Clients run directly at an apiserver, and through the proxy while two apiservers fail one after the other. Each
 * operation must succeed and print what it prints directly, unless the apiserver's failure explains the difference.
 * `npm run test:clients` runs more clients and more faults.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clientsNeeds, operationsOf } from "./clients-matrix/clients.ts";
import { defects, table } from "./clients-matrix/outcome.ts";
import { backendCount, Play } from "./clients-matrix/play.ts";
import { rounds } from "./load/faults.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";

const test = suite("real/clients-matrix");
const clients = ["kubectl 1.36", "helm", "client-go", "Python", "@kubernetes/client-node", "curl"];
const real = testWith(test, [
  ...clusterNeeds,
  ...clientsNeeds,
  "kubectl",
  "helm",
  "informer",
  "python",
  "curl",
]);

real(
  "clients keep their watches and get the same answers as directly while one apiserver after the other fails",
  async () => {
    const operations = operationsOf(clients, figure);
    const faults = rounds(backendCount)
      .filter(({ fault }) => fault.name === "stopped" || fault.name === "killed")
      .slice(0, 2);
    const outcomes = await Play.run({
      modes: ["direct", "through with faults"],
      operations,
      faults,
      maxMs: 300_000,
      say: figure,
    });
    for (const line of table(outcomes, true).split("\n")) figure(line);
    assert.equal(defects(outcomes), []);
    const held = operations.filter(({ isLong }) => isLong).length;
    assert.ok(outcomes.length > 2 * held, `${outcomes.length} runs`);
  },
);

test.run();
