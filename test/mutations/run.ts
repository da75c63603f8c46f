/**
 * npm run mutations [word]     plants each fault in turn, or only those whose name or file contains the word
 *
 * A fault is detected if the test that is named for it fails by the named title. Without the fault that test must pass.
 * Exits with 1 if fewer than 95 % of the faults are detected, if a fault no longer finds its place, or if a test fails
 * without any fault.
 */
import { availableParallelism } from "node:os";
import { areas } from "./all.ts";
import type { Defect } from "./defect.ts";
import { fileOf, play } from "./play.ts";

const leastShare = 0.95;
const word = process.argv[2] ?? "";
const isMeant = ({ name, test, mutations }: Defect): boolean =>
  [name, test, ...mutations.map(({ file }) => file)].some((text) => text.includes(word));

const planted = Object.entries(areas).flatMap(([area, defects]) =>
  defects.filter(isMeant).map((defect) => ({ area, defect })),
);
const troubles: string[] = [];
const caught = new Map<string, number>();

async function inTurns<T>(all: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  const waiting = [...all];
  const turns = Array.from({ length: availableParallelism() }, async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await run(one);
  });
  await Promise.all(turns);
}

await inTurns([...new Set(planted.map(({ defect }) => defect.test))], async (file) => {
  const { passed, said } = await play(fileOf(file), []);
  if (!passed) troubles.push(`${file} fails without any fault: ${said.slice(-500)}`);
});

await inTurns(planted, async ({ area, defect }) => {
  const { name, mutations, test, fails } = defect;
  const { isMisfit, failed, said } = await play(fileOf(test), mutations);
  const isCaught = failed.some((title) => title.includes(fails));
  if (isMisfit) troubles.push(`${name}: ${said.slice(-300)}`);
  if (isCaught) caught.set(area, (caught.get(area) ?? 0) + 1);
  process.stdout.write(`${isCaught ? "caught" : "MISSED"}  ${area}: ${name}  (${test})\n`);
});

const sum = [...caught.values()].reduce((total, count) => total + count, 0);
for (const [area, defects] of Object.entries(areas))
  process.stdout.write(`${area}: ${caught.get(area) ?? 0} of ${defects.filter(isMeant).length}\n`);
for (const trouble of troubles) process.stdout.write(`${trouble}\n`);
process.stdout.write(
  `${sum} of ${planted.length} caught (${((100 * sum) / Math.max(1, planted.length)).toFixed(1)} %)\n`,
);
process.exitCode = troubles.length > 0 || sum < leastShare * planted.length ? 1 : 0;
