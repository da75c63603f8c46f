/** One apiserver on a restored copy of etcd, with a few seeds. `npm run test:seeds` plays a thousand. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { playForks } from "./watches/forks.ts";

const test = suite("simulation/forks");

test("in forty runs an apiserver on a restored copy is found, nothing of it stays with any client, and all is right soon", () => {
  const told: string[] = [];
  let found = 0;
  let sentinels = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const { problems, counts } = playForks(seed);
    if (problems.length > 0) told.push(`seed ${seed}: ${JSON.stringify(problems)}`);
    found += counts.get("found dead") ?? 0;
    sentinels += counts.get("sentinels") ?? 0;
  }
  assert.equal(told, []);
  assert.ok(found >= 35, `found ${found} times`);
  assert.ok(sentinels > 100, `${sentinels} sentinels`);
});

test.run();
