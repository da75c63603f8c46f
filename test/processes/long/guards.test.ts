/**
 * Proves that the tests of rows A39 to A50 detect a missing guard. Each guard in turn is removed from the sources
 * (guards/table.ts), and the named test must then fail. With the guard in place it must pass. One row: `GUARD="a dot"
 * npm run test:guards`.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { play } from "../../mutations/play.ts";
import { type Guard, guards } from "../guards/table.ts";

const test = suite("long/guards");

const wanted = process.env["GUARD"] ?? "";

const meant = guards.filter(({ row, without }) => `${row}: ${without}`.includes(wanted));

for (const file of new Set(meant.map((guard) => guard.test)))
  test(`with every guard in its place ${file} passes`, async () => {
    const { passed, said } = await play(file, []);
    assert.ok(passed, said.slice(-2000));
  });

for (const { row, without, removal, test: file, fails } of meant)
  test(`${row}: it is seen that without it ${without}`, async () => {
    const removals = [removal].flat();
    const { passed, isMisfit, failed, said } = await play(file, removals);
    assert.not(isMisfit, said);
    assert.not(passed, `${file} passes without ${removals.map(({ find }) => find).join(" and ")}`);
    assert.ok(
      failed.some((title) => title.includes(fails)),
      `"${fails}" is not among those that failed: ${JSON.stringify(failed)}\n${said.slice(-1500)}`,
    );
  });

test("every row from A39 to A50 has a guard here", () => {
  const rows = new Set(guards.flatMap(({ row }: Guard) => row.split(", ")));
  const missing = Array.from({ length: 12 }, (_, at) => `A${39 + at}`).filter((row) => !rows.has(row));
  assert.equal(missing, []);
});

test.run();
