/**
 * Checks that every code block on a page has a kind, and that a test checks the blocks of each kind. The quick checks
 * are in this file.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse, parseAllDocuments, stringify } from "yaml";
import { schemas } from "../../src/ops/admin/api/openapi.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { metricsPage } from "../ops/admin/metrics/metrics-page.ts";
import { type Block, blocks, blocksOf, indented, isManifest, pageCommands } from "./blocks.ts";
import { placeOf, ruleOf, rules } from "./places.ts";

const test = suite("docs/blocks");

/** Returns what is wrong with a block, or undefined if nothing is. */
type Judge = (block: Block) => string | undefined;

const judges: Readonly<Record<string, Judge>> = {
  // Commands are not judged here: docs/places.ts names, for each, the test that runs it.
  sh: () => undefined,
  text: printed,
  yaml: configured,
  // Files of other projects, which contain a part about watchkeeper.
  "yaml foreign": isYaml,
  json: answered,
  promql: asked,
};

test("no block of code is without a fence, and no fence without a kind that is tried", () => {
  assert.equal(indented(), []);
  const unknown = blocks.filter(({ kind }) => judges[kind] === undefined);
  assert.equal(unknown.map(nameOf), []);
  assert.ok(blocks.length > 90, `${blocks.length} blocks`);
});

for (const kind of Object.keys(judges)) {
  test(`every block of ${kind} is what it says`, () => {
    const own = blocks.filter((block) => block.kind === kind);
    const wrong = own.flatMap((block) => judges[kind]?.(block)?.replace(/^/, `${nameOf(block)}: `) ?? []);
    assert.equal(wrong, []);
    assert.ok(own.length > 0);
  });
}

test("every command of a page is run by a test, or the table says why not", () => {
  const unplaced = pageCommands.filter((command) => ruleOf(command) === undefined);
  assert.equal(
    unplaced.map(({ page, line, text }) => `${page}:${line} ${text}`),
    [],
  );
  assert.ok(pageCommands.length > 100, `${pageCommands.length} commands`);
});

test("every row of that table is of a command that there is, and names a test that there is", () => {
  const used = new Set(pageCommands.map((command) => ruleOf(command)));
  assert.equal(
    rules.filter((rule) => !used.has(rule)).map(([command]) => String(command)),
    [],
  );
  for (const [command, place] of rules) {
    if (place.run !== "nowhere" || place.shownBy === undefined) continue;
    const [file, text] = place.shownBy;
    assert.ok(readFileSync(file, "utf8").includes(text), `${String(command)}: ${file} has no "${text}"`);
  }
});

test("what is run nowhere and shown by no test is little", () => {
  const unshown = pageCommands.filter((command) => {
    const place = placeOf(command);
    return place.run === "nowhere" && place.shownBy === undefined;
  });
  const bare = new Set(unshown.map(({ text }) => text.replace(/ .*/, "")));
  assert.equal([...bare].toSorted(), ["helm", "journalctl", "npm", "ssh", "top"]);
});

test("a block is read to its end, a command without its comment, and in quotes nothing is cut", () => {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-blocks-"));
  const page = join(folder, "a.md");
  writeFileSync(page, "x\n\n```sh\na 'b # c' && d \\\n  -e   # why\n# not this\nf\n```\n");
  const [block] = blocksOf(page);
  rmSync(folder, { recursive: true });
  assert.equal([block?.line, block?.kind], [4, "sh"]);
  assert.is(block?.text.split("\n").length, 5);
});

/** Pages with examples of output, and the test that compares these examples with the real output. */
const printedBy: Readonly<Record<string, string>> = {
  "README.md": "test/processes/demo/incidents/pages.test.ts",
  "docs/incidents/": "test/processes/demo/incidents/pages.test.ts",
  "docs/admin-api.md": "test/processes/docs/commands.test.ts",
};

function printed({ page }: Block): string | undefined {
  // test/ops/incidents/whole/runbooks.test.ts compares the runbooks' examples.
  if (page.startsWith("docs/runbooks/")) return undefined;
  const [, file = ""] = Object.entries(printedBy).find(([start]) => page.startsWith(start)) ?? [];
  return existsSync(file) ? undefined : "no test compares it with what is printed";
}

/** Judges a YAML block: a whole configuration, a part of one, a Prometheus configuration, or Kubernetes objects. */
function configured(block: Block): string | undefined {
  const { page, text } = block;
  if (isManifest(block)) return shaped(text);
  const said = parse(text) as Record<string, unknown>;
  if (said["scrape_configs"] !== undefined) return scraped(said["scrape_configs"]);
  // A part replaces the same part of a complete sample configuration.
  const whole = parse(readFileSync("config/static.yaml", "utf8")) as Record<string, unknown>;
  const isWhole = said["kind"] === "WatchkeeperConfiguration";
  const config = parseConfig(isWhole ? text : stringify({ ...whole, ...said }), page);
  return isProblems(config) ? config.map((problem) => lineOf(problem)).join("\n") : undefined;
}

function isYaml({ text }: Block): string | undefined {
  return parse(text) === null ? "no content" : undefined;
}

/**
 * Checks Kubernetes objects as far as that is possible without an apiserver. test/real/docs.test.ts has an apiserver
 * check them in a dry run.
 */
function shaped(text: string): string | undefined {
  const objects = parseAllDocuments(text).map((one) => one.toJS() as Manifest);
  const odd = objects.filter(({ apiVersion, kind, metadata }) => !apiVersion || !kind || !metadata?.name);
  return objects.length > 0 && odd.length === 0 ? undefined : "an object without apiVersion, kind or name";
}

type Manifest = {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: { readonly name?: string };
};

function scraped(jobs: unknown): string | undefined {
  const [job] = jobs as readonly { readonly job_name?: string }[];
  // The alert rules select the job by this name.
  return job?.job_name === "watchkeeper" ? undefined : "no job of the name that the alerts look for";
}

/**
 * Judges an example response of the JSON API: it has to match, without missing or additional fields, the schema of its
 * `kind` or, if it has no `kind`, the schema that the heading above the block names.
 */
function answered({ page, line, text }: Block): string | undefined {
  const answer = JSON.parse(text) as { readonly kind?: string };
  if (answer.kind?.endsWith("List")) return listed(answer);
  const before = readFileSync(page, "utf8").split("\n").slice(0, line);
  const heading = before.findLast((one) => one.startsWith("### ")) ?? "";
  const isNamed = answer.kind !== undefined && answer.kind in schemas;
  const name = isNamed ? answer.kind : singular(heading.slice("### ".length));
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  ajv.addSchema({ $id: "https://here/", components: { schemas } });
  const validate = ajv.getSchema(`https://here/#/components/schemas/${name}`);
  if (validate === undefined) return `no schema of the name "${name}"`;
  // In an example, "..." stands for a time or an omitted part.
  return validate(answer) === true ? undefined : `${name}: ${ajv.errorsText(validate.errors)}`;
}

function listed(answer: object): string | undefined {
  const fields = ["at", "groups", "items", "kind", "limit", "matching", "offset", "total"];
  const own = Object.keys(answer).toSorted();
  return own.join() === fields.join() ? undefined : `a list has ${fields.join()}`;
}

function singular(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`.replace(/(ch)?e?s$/, (end) =>
    end === "ches" ? "ch" : end === "es" ? "e" : "",
  );
}

/**
 * Checks that each metric in a query is one of the proxy's. test/real/docs.test.ts checks with promtool that the query
 * is valid.
 */
function asked({ text }: Block): string | undefined {
  const ours = new Set([...metricsPage().matchAll(/`(watchkeeper_\w+)`/g)].map(([, name]) => name));
  const foreign = [...text.matchAll(/\bwatchkeeper_\w+/g)].filter(([name]) => !ours.has(name));
  return foreign.length === 0 ? undefined : `no metric of ours: ${foreign.join()}`;
}

function nameOf({ page, line, kind }: Block): string {
  return `${page}:${line} (${kind})`;
}

test.run();
