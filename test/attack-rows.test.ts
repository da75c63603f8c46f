/**
 * Checks docs/attacks.md: every row A1 to A60 names existing tests, one of the attack and one of a harmless client, and
 * an existing metric.
 */
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { attackRows, type Named, testText, titlesIn } from "./support/attack-table.ts";
import { faultsOfOthers } from "./support/faults-of-others.ts";
import { ownFaults } from "./support/own-faults.ts";

const test = suite("attack rows");

const rows = attackRows(readFileSync("docs/attacks.md", "utf8"));
const places = ["h2", "h1", "Upgrade", "TLS", "backend", "admin", "file", "log", "metrics"];
/** Patterns that show, in a test's title or in its file, which protocol the test uses. */
const spoken: Record<string, RegExp> = {
  h1: /h1|HTTP\/1\.1/i,
  Upgrade: /upgrade|splice|tunnel/i,
  TLS: /tls|TLS|handshake|hosts|peek/,
};

/** True if a test of the file names the row in its title, or, if `piece` is given, if the file contains that text. */
function isThere({ file, piece }: Named, row: string, also = /./): boolean {
  const text = testText(file);
  if (piece !== undefined) return text.includes(piece);
  return titlesIn(text).some((title) => new RegExp(`\\b${row}\\b`).test(title) && also.test(title));
}

test("the rows are A1 to A60, each once", () => {
  assert.equal(
    rows.map(({ row }) => row),
    Array.from({ length: 60 }, (_, at) => `A${at + 1}`),
  );
});

test("each test that is listed is there, and one of its titles names the row", () => {
  const missing = rows.flatMap(({ row, tests }) =>
    tests.filter((one) => !isThere(one, row)).map(({ file }) => `${row}: ${file}`),
  );
  assert.equal(missing, []);
});

test("each row has an honest twin, and its title says so", () => {
  const missing = rows.flatMap(({ row, twins }) =>
    twins.filter((one) => !isThere(one, row, /twin/)).map(({ file }) => `${row}: ${file}`),
  );
  assert.equal(missing, []);
});

test("each row has a test of every protocol that it is said to be played over", () => {
  const missing = rows.flatMap(({ row, over, tests }) => {
    assert.equal(
      over.filter((one) => !places.includes(one)),
      [],
    );
    return over
      .filter((one) => {
        const pattern = spoken[one];
        const says = ({ file, piece = "" }: Named): boolean =>
          pattern?.test(file) === true ||
          pattern?.test(piece) === true ||
          titlesIn(testText(file)).some((title) => title.includes(row) && pattern?.test(title) === true);
        return pattern !== undefined && !tests.some(says);
      })
      .map((one) => `${row}: ${one}`);
  });
  assert.equal(missing, []);
});

test("each row is played beside a bystander", () => {
  const alone = rows
    .filter(
      ({ tests }) =>
        !tests.some(({ file }) =>
          /Scene\.open|sceneOf|startProxy/.test(file.startsWith("attacks/whole/") ? testText(file) : ""),
        ),
    )
    .map(({ row }) => row);
  assert.equal(alone, []);
});

test("each row is counted by a metric of docs/metrics.md", () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  assert.equal(
    rows
      .filter(({ metric }) => !page.includes(`\`${metric}\``))
      .map(({ row, metric }) => `${row}: ${metric}`),
    [],
  );
});

test("each row says what limits the attack", () => {
  assert.equal(
    rows.filter(({ attack, limit }) => attack === "" || limit === "").map(({ row }) => row),
    [],
  );
});

test("each fault of others names tests that are there", () => {
  const missing = faultsOfOthers
    .flatMap(({ tests }) => tests)
    .filter(([file, title]) => !titlesIn(testText(file)).some((one) => one.includes(title)));
  assert.equal(missing, []);
  assert.ok(faultsOfOthers.every(({ tests }) => tests.length > 0));
  assert.match(readFileSync("docs/attacks.md", "utf8"), `${faultsOfOthers.length} faults`);
});

test("each fault of its own names tests that are there", () => {
  const missing = ownFaults.flatMap(({ tests }) => tests).filter((file) => testText(file) === "");
  assert.equal(missing, []);
});

test.run();
