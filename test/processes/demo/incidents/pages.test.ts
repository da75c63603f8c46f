/**
 * The pages must show the lines that the stories print. Only the form of a line is compared, because figures differ in
 * each run.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidents } from "../../../../demo/incidents/incidents.ts";
import { blocksOf, commandsOf, pageCommands } from "../../../docs/blocks.ts";
import { placeOf } from "../../../docs/places.ts";
import { Shell } from "../../../docs/shell.ts";
import { hasKubectl } from "../../../support/kubectl.ts";

const test = suite("demo/incidents/pages");

/** Returns the lines of the output that a page shows. */
function shownOn(page: string): readonly string[] {
  const [block] = blocksOf(page).filter(({ kind }) => kind === "text");
  assert.ok(block !== undefined, `${page} shows nothing`);
  return linesOf(block.text);
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/**
 * Returns the speaker of a line such as "   0.67 s  watchkeeper  cp is suspect". The number of an apiserver is dropped:
 * the fault hits the apiserver to which the client is bound, which may be either.
 */
function speakerIn(line: string): string | undefined {
  const [, speaker] = /^ +\d+\.\d\d s {2}(\S+(?: \S+)*?)(?: {2}|$)/.exec(line) ?? [];
  return speaker?.replace(/^apiserver-\d$/, "apiserver");
}

/** Returns the first column of the table below the line that matches `head`. */
function rowsAfter(lines: readonly string[], head: RegExp): readonly string[] {
  const from = lines.findIndex((line) => head.test(line));
  const rows = from < 0 ? [] : lines.slice(from + 1);
  const end = rows.findIndex((line) => speakerIn(line) !== undefined || line.startsWith("  the alert"));
  return rows.slice(0, end < 0 ? undefined : end).map((line) => line.trim().split(/ {2,}| \d+ of /)[0] ?? "");
}

for (const number of Object.keys(incidents)) {
  test(`incident ${number} prints what its page shows`, async () => {
    const shown = shownOn(`docs/incidents/${number}.md`);
    const shell = new Shell();
    const { code, text } = await shell.run(`watchkeeper incident ${number}`);
    shell.remove();
    // Exit code 1 means that a claim of the story did not hold, which the story's own test checks.
    assert.ok(code === 0 || code === 1, text);
    const printed = linesOf(text);
    const head = /^ +without \(naive proxy\) +with watchkeeper$/;
    assert.equal(rowsAfter(shown, head), rowsAfter(printed, head));
    const speakers = new Set(printed.map((line) => speakerIn(line)));
    for (const line of shown) assert.ok(speakers.has(speakerIn(line)), line);
  });
}

test("`npm start` prints what README shows, and what it says to try can be tried", async () => {
  const shown = shownOn("README.md");
  const shell = new Shell();
  try {
    const demo = shell.start("npm start");
    assert.ok(await demo.says(/^ *kubectl .*\n[^]*^ *kubectl .*\n/m), demo.text());
    const offered = linesOf(demo.text()).filter((line) => line.trim().startsWith("kubectl "));
    const tried = pageCommands.filter(
      ({ page, text }) => page === "README.md" && text.startsWith("kubectl "),
    );
    assert.is(tried.length, 2);
    for (const { text } of tried) {
      const [start = "", end = ""] = text.split("…");
      const line = offered.find((one) => one.includes(start) && one.trim().endsWith(end));
      assert.ok(line !== undefined, `${text} is not among ${offered.join()}`);
      if (hasKubectl) await serves(shell, line.trim());
      else process.stdout.write(`skip: needs kubectl, for ${text}\n`);
    }
    assert.ok(await demo.says(/serves again[^]*through the naive proxy.*\n/, 120_000), demo.text());
    const printed = linesOf(demo.text());
    const columns = / its clients saw +GETs failed/;
    assert.equal(rowsAfter(shown, columns).slice(0, 2), rowsAfter(printed, columns).slice(0, 2));
    // The backend verdicts and their order differ in each run. What happens to the apiservers does not.
    const deedsIn = (lines: readonly string[]): readonly string[] =>
      lines
        .filter((line) => speakerIn(line)?.startsWith("apiserver") === true)
        .map((line) => line.replace(/^.*? s {2}apiserver-\d +/, ""));
    assert.equal(deedsIn(printed), deedsIn(shown));
    demo.signal("SIGINT");
    await demo.ended;
  } finally {
    shell.remove();
  }
});

async function serves(shell: Shell, line: string): Promise<void> {
  if (!line.endsWith("-w")) {
    const { code, text } = await shell.run(line);
    assert.is(code, 0, text);
    return;
  }
  const watch = shell.start(line);
  assert.ok(await watch.says(/NAME +DATA +AGE/), watch.text());
  watch.signal("SIGINT");
  await watch.ended;
}

test("each page's stories are run, by this test", () => {
  const stories = pageCommands.filter((command) => placeOf(command).run === "story");
  const known =
    /^(npm start|kubectl --kubeconfig … (get configmaps -w|create configmap hello .*)|watchkeeper incident 004)$/;
  assert.equal(
    stories.filter(({ text }) => !known.test(text)).map(({ text }) => text),
    [],
  );
  assert.ok(commandsOf({ page: "", line: 1, kind: "sh", text: "npm start" }).length === 1);
});

test.run();
