/**
 * Checks that each planted fault finds its place in the sources and names an existing test. `npm run mutations` checks
 * that each is detected.
 */
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { guards } from "../processes/guards/table.ts";
import { watchDefects } from "../simulation/watch-defects.ts";
import { areas } from "./all.ts";
import { fileOf, play } from "./play.ts";

const test = suite("mutations");

const all = Object.values(areas).flat();
const text = (file: string): string => readFileSync(file, "utf8");

test("there are sixty at least, in every area", () => {
  assert.ok(all.length >= 60, String(all.length));
  for (const [area, defects] of Object.entries(areas)) assert.ok(defects.length >= 5, area);
});

test("each has its place, once; so has each fault of the watch simulation, and each guard that is taken out", () => {
  const faults = [
    ...all,
    ...watchDefects,
    ...guards.map(({ without: name, removal }) => ({ name, mutations: [removal].flat() })),
  ];
  const lost = faults.flatMap(({ name, mutations }) =>
    mutations.filter(({ file, find }) => text(`src/${file}`).split(find).length !== 2).map(() => name),
  );
  assert.equal(lost, []);
});

test("each is to fail a test that is there", () => {
  for (const { name, test: file } of all) assert.ok(text(`test/${file}.test.ts`).length > 0, name);
});

test("the title that is to fail stands in the test that is named", () => {
  const untitled = all.filter(({ test: file, fails }) => {
    // Titles in tables are built from parts. The fixed text lies between those parts, so such files are not searched
    // for it.
    const titles = text(`test/${file}.test.ts`).replaceAll(/\s+/g, " ");
    return !titles.includes(fails) && !/\$\{/.test(titles);
  });
  assert.equal(
    untitled.map(({ name, test: file, fails }) => `${name}: ${file}: ${fails}`),
    [],
  );
});

test("one that is planted fails its test by the title that is named, and without it the test passes", async () => {
  const [one] = all;
  if (one === undefined) throw new Error("There is none");
  assert.ok((await play(fileOf(one.test), [])).passed);
  const { failed } = await play(fileOf(one.test), one.mutations);
  assert.ok(
    failed.some((title) => title.includes(one.fails)),
    failed.join(),
  );
});

test("one that has no place is told apart from one that is caught", async () => {
  const { isMisfit } = await play(fileOf("base/token-bucket"), [
    { file: "base/token-bucket.ts", find: "no such text", replace: "" },
  ]);
  assert.ok(isMisfit);
});

test.run();
