/**
 * Runs the test files in several processes at a time, each file with a time limit. A file that needs a process of its
 * own gets one (`needsOwnProcess`); up to `mostTogether` others share one, which saves half of their CPU time.
 *
 * node test/run.ts [--only a,b] [--except a,b] [--again] [word ...]
 *
 * Words select the files whose path contains one of them.
 *
 * --again: runs each failed file once more, alone, and names the files that pass then. This is for machines that
 * sometimes pause for a second. `npm run check` does not use it, because there a test that fails now and then counts as
 * a defect.
 */
import { spawn } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { began, ended, needsOwnProcess, type Outcome, outcomeOf, tells } from "./support/outcome.ts";

/**
 * If more files than this have failed, --again runs none of them again: so many failures are not caused by a busy
 * machine.
 */
const mostAgain = 5;
/**
 * The time limit of a test file, in ms. The slowest fast file takes a tenth of `fast`. `slow` is for real and simulated
 * suites, which also have time limits of their own. `long` is for suites that simulate thousands of seeds, which took a
 * quarter of an hour on a busy machine.
 */
const killAfterMs = { fast: 60_000, slow: 900_000, long: 2_400_000 };
/**
 * Time, in ms, within which a file has to end after it has printed its result. A failed test that leaves a server open
 * would otherwise never end.
 */
const endsWithinMs = 60_000;
const slowFolders = [
  "test/real/",
  "test/simulation/",
  "test/conformance/",
  "test/processes/",
  "test/attacks/whole/",
  "test/ops/incidents/whole/",
  "test/fuzz/",
];

/**
 * Suites that `--only slow` and `--except slow` select. They test whole processes and take so many seconds that `npm
 * test` would last longer than three minutes with them.
 */
const slowSuites = [
  "incidents/whole",
  "processes/admin",
  "processes/docs",
  "processes/cli/deploy",
  "processes/cli/kubectl",
  "processes/cli/last-requests",
  "processes/cli/serve/check",
  "processes/cli/serve/demo",
  "processes/cli/serve/handover",
  "processes/cli/serve/incident",
  "processes/cli/serve/run",
  "processes/cli/serve/shared-port",
  "processes/cli/setup/try",
  "processes/demo/story",
  "processes/discovery",
  "processes/idle-memory",
  "processes/own-faults",
  "processes/reloads",
  "processes/replicas",
];

const { values, positionals } = parseArgs({
  options: {
    only: { type: "string" },
    except: { type: "string" },
    again: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

function selected(): string[] {
  const inFolder = (file: string, list: string | undefined): boolean =>
    list
      ?.split(",")
      .flatMap((folder) => (folder === "slow" ? slowSuites : [folder]))
      .some((name) => file.startsWith(`test/${name}/`) || file === `test/${name}.test.ts`) === true;
  return globSync("test/**/*.test.ts", { exclude: ["test/**/node_modules/**"] })
    .filter((file) => values.only === undefined || inFolder(file, values.only))
    .filter((file) => !inFolder(file, values.except))
    .filter((file) => positionals.length === 0 || positionals.some((word) => file.includes(word)))
    .toSorted((a, b) => placeOf(a) - placeOf(b) || statSync(b).size - statSync(a).size);
}

/**
 * Returns the rank of a file's suite: the suites that run longest come first. Otherwise one long file would be left for
 * the end, and all other cores would wait for it. Within a rank, larger files come first, because they usually take
 * longer.
 */
function placeOf(file: string): number {
  const at = slowFolders.findIndex((folder) => file.startsWith(folder));
  return at < 0 ? slowFolders.length : at;
}

/** How many files at most run in one process. A process that dies costs the others of its files a new one. */
const mostTogether = 24;
const together = new URL("./support/together.ts", import.meta.url).pathname;

/**
 * Runs files in one process, one after the other, and reports each. Returns the outcomes of those that ran: a file that
 * ends its process, or that must be killed, fails, and the files after it did not run.
 */
function runTogether(files: readonly string[]): Promise<Outcome[]> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--expose-gc", "--import", tells, together, ...files], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, FORCE_COLOR: "0", NODE_COMPILE_CACHE: compiled },
    });
    const outcomes: Outcome[] = [];
    let output = "";
    let started = Date.now();
    let timer: NodeJS.Timeout | undefined;
    const end = (code: number | null): void => {
      const file = files[outcomes.length] ?? "";
      const outcome = outcomeOf(file, output, code);
      report(outcome, output, Date.now() - started);
      outcomes.push(outcome);
      output = "";
    };
    const limit = (): void => {
      clearTimeout(timer);
      started = Date.now();
      timer = setTimeout(() => {
        output += `\nkilled after ${Math.round((Date.now() - started) / 1000)} s\n`;
        child.kill("SIGKILL");
      }, killAfterMs.fast);
    };
    limit();
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith(`${began} `)) limit();
      else if (line.startsWith(`${ended} `)) end(Number(line.split(" ").at(-1)));
      else output += `${line}\n`;
    });
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (outcomes.length < files.length) end(code === 0 ? 1 : code);
      resolve(outcomes);
    });
  });
}

/** Takes the next file and, if it needs no process of its own, those after it that need none either. */
function take(files: string[]): string[] {
  const taken = files.splice(0, 1);
  while (taken.every(isSharing) && isSharing(files[0]) && taken.length < mostTogether)
    taken.push(...files.splice(0, 1));
  return taken;
}

function isSharing(file: string | undefined): boolean {
  if (file === undefined || slowFolders.some((folder) => file.startsWith(folder))) return false;
  return !needsOwnProcess(readFileSync(file, "utf8"));
}

async function runNext(files: string[]): Promise<Outcome[]> {
  const taken = take(files);
  if (taken.length === 1) return [await runFile(taken[0] ?? "")];
  const outcomes = await runTogether(taken);
  files.unshift(...taken.slice(outcomes.length));
  return outcomes;
}

function runFile(file: string): Promise<Outcome> {
  const slow = slowFolders.some((folder) => file.startsWith(folder));
  const limitMs = killAfterMs[file.includes("/long/") ? "long" : slow ? "slow" : "fast"];
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--expose-gc", "--import", tells, file], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, FORCE_COLOR: "0", NODE_COMPILE_CACHE: compiled },
    });
    const chunks: Buffer[] = [];
    const killIn = (ms: number): NodeJS.Timeout =>
      setTimeout(() => {
        chunks.push(Buffer.from(`\nkilled after ${Math.round((Date.now() - started) / 1000)} s\n`));
        child.kill("SIGKILL");
      }, ms);
    let timer = killIn(limitMs);
    child.stdout.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (!chunk.includes("  Duration:  ")) return;
      clearTimeout(timer);
      timer = killIn(endsWithinMs);
    });
    child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.on("close", (code) => {
      clearTimeout(timer);
      const output = Buffer.concat(chunks).toString();
      const outcome = outcomeOf(file, output, code);
      report(outcome, output, Date.now() - started);
      resolve(outcome);
    });
  });
}

function report(outcome: Outcome, output: string, tookMs: number): void {
  const mark = outcome.failed > 0 ? "✗" : "✓";
  process.stdout.write(
    `${mark} ${outcome.file}  ${outcome.passed} passed  ${(tookMs / 1000).toFixed(1)} s\n`,
  );
  const said = output.split("\n").filter((line) => /^(skip|figure): /.test(line.trim()));
  if (outcome.failed > 0) process.stdout.write(`${output.split("\n").slice(-80).join("\n")}\n`);
  else if (said.length > 0) process.stdout.write(`${said.map((line) => `    ${line.trim()}`).join("\n")}\n`);
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 26 || (major === 26 && minor < 12)) {
  process.stderr.write(
    `The tests need Node >= 26.12, this is ${process.version}: run them with npm (npm ci brings one)\n`,
  );
  process.exit(2);
}
// Two hundred processes load the same modules. A shared compile cache saves a third of their CPU time.
const compiled = mkdtempSync(join(tmpdir(), "watchkeeper-tests-"));
process.on("exit", () => rmSync(compiled, { recursive: true, force: true }));
const waiting = selected();
// One process more than there are cores, because a test spends half of its time waiting for timers. Not so with real
// apiservers: such a test needs about a core whenever it does not wait.
const hasReal = waiting.some((file) => file.startsWith("test/real/"));
const atOnce = hasReal ? availableParallelism() : availableParallelism() + 1;
const outcomes: Outcome[] = [];
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (waiting.length > 0) outcomes.push(...(await runNext(waiting)));
  }),
);
const doubtful = values.again ? outcomes.filter(({ failed }) => failed > 0) : [];
let repeated = 0;
if (doubtful.length <= mostAgain) {
  for (const first of doubtful) {
    process.stdout.write(`${first.file} failed: once more, alone\n`);
    outcomes[outcomes.indexOf(first)] = await runFile(first.file);
    repeated += 1;
  }
}
const sum = (of: (outcome: Outcome) => number): number =>
  outcomes.reduce((total, outcome) => total + of(outcome), 0);
const failed = sum((outcome) => outcome.failed);
process.stdout.write(
  `\n${sum((outcome) => outcome.passed)} passed, ${failed} failed, ${sum((outcome) => outcome.skipped)} skipped`,
);
process.stdout.write(repeated > 0 ? `, ${repeated} files twice\n` : "\n");
process.exitCode = failed > 0 || outcomes.length === 0 ? 1 : 0;
