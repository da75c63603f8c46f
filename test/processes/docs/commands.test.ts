/**
 * Runs the commands of the documentation exactly as the pages show them, in a folder, against embedded apiservers
 * (test/docs/places.ts).
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { blocks, type PageCommand, pageCommands } from "../../docs/blocks.ts";
import { placeOf } from "../../docs/places.ts";
import { Shell } from "../../docs/shell.ts";
import { Stage } from "../../docs/stage.ts";
import { figure } from "../../support/figure.ts";

const test = suite("docs/commands");

let stage: Stage;
const ran = { count: 0 };

test.before(async () => {
  stage = await Stage.start();
});
test.after(async () => {
  await stage.stop();
  figure(`${ran.count} commands of pages were run`);
});

/**
 * Returns the commands by page, because a reader follows one page from its start. All runbooks count as one page,
 * because they start with the same commands.
 */
function chapters(): ReadonlyMap<string, readonly PageCommand[]> {
  const byPage = Map.groupBy(pageCommands, ({ page }) =>
    page.startsWith("docs/runbooks/") ? "docs/runbooks" : page,
  );
  const here = new Set(["here", "endless", "said"]);
  const own = [...byPage].map(([page, commands]): [string, PageCommand[]] => {
    const once = new Map(commands.map((command) => [command.text, command]));
    return [page, [...once.values()].filter((command) => here.has(placeOf(command).run))];
  });
  return new Map(own.filter(([, commands]) => commands.length > 0));
}

for (const [page, commands] of chapters()) {
  test(`${page}: ${commands.length} commands do what they say`, async () => {
    const shell = new Shell(stage.words, stage.env);
    try {
      stage.furnish(shell.folder);
      let said = "";
      for (const command of commands) {
        if (isMissing(command)) continue;
        said = await tried(shell, command, said);
        stage.localize(shell.folder);
        ran.count += 1;
      }
    } finally {
      shell.remove();
    }
  });
}

/** Runs the command and returns its output. `before` is the output of the previous command. */
async function tried(shell: Shell, command: PageCommand, before: string): Promise<string> {
  const place = placeOf(command);
  const name = `${command.page}:${command.line} ${command.text}`;
  if (place.run === "said") {
    const [start = "", end = ""] = command.text.split("…");
    const isSaid = before.split("\n").some((line) => line.startsWith(start) && line.endsWith(end));
    assert.ok(isSaid, `${name}: was not said, but ${before}`);
    return before;
  }
  if (place.run === "endless") {
    const started = shell.start(command.text);
    assert.ok(await started.says(place.says), `${name}: said ${started.text()}`);
    started.signal("SIGINT");
    const code = await started.ended;
    assert.ok(code === 0 || code === "SIGINT", `${name}: ended with ${code}, said ${started.text()}`);
    return started.text();
  }
  const { code, text } = await shell.run(command.text);
  const codes: readonly (number | string)[] = (place.run === "here" ? place.codes : undefined) ?? [0];
  assert.ok(codes.includes(code), `${name}: ended with ${code}, said ${text}`);
  return text;
}

const asideFromOurs = ["jq", "openssl", "ss", "curl"];

/** True if the command needs a program that this machine does not have. It also prints that the command is skipped. */
function isMissing({ text }: PageCommand): boolean {
  const missing = asideFromOurs.filter(
    (program) => new RegExp(`(^|\\| )${program} `).test(text) && !isThere(program),
  );
  for (const program of missing) process.stdout.write(`skip: needs ${program}, for ${text}\n`);
  return missing.length > 0;
}

function isThere(program: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
}

/** True if the program is missing. It also prints that the test is skipped. */
function isWithout(program: string): boolean {
  if (isThere(program)) return false;
  process.stdout.write(`skip: needs ${program}\n`);
  return true;
}

test("an event of the API is of the form that its page shows", async () => {
  if (isWithout("curl")) return;
  const [shown] = blocks.filter(({ page, kind }) => page === "docs/admin-api.md" && kind === "text");
  const shell = new Shell(stage.words, stage.env);
  const address = "http://127.0.0.1:7480/api/v1/events?kind=backend.changed";
  const { text } = await shell.run(`curl -sN --max-time 1 -H 'last-event-id: 1-1' ${address}`);
  shell.remove();
  const [form, real] = [shown?.text ?? "", text].map((one) => eventIn(one));
  assert.equal(form?.names, ["id", "event", "data"]);
  assert.equal(real?.names, form?.names);
  // The id is the start time of the process and a sequence number.
  for (const event of [form, real]) assert.match(event?.id ?? "", /^\d{17}-\d+$/);
  assert.equal(
    form?.fields.filter((field) => real?.fields.includes(field) !== true),
    [],
  );
});

type ShownEvent = {
  readonly names: readonly string[];
  readonly id: string;
  readonly fields: readonly string[];
};

/** Returns the first event of the kind that the page shows. */
function eventIn(text: string): ShownEvent | undefined {
  const lines =
    text
      .split(/\n\n/)
      .find((one) => one.includes("event: backend.changed"))
      ?.trim()
      .split("\n") ?? [];
  const valueOf = (name: string): string =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
  const names = lines.map((line) => line.split(":")[0] ?? "");
  // "..." stands for more fields.
  const fields = Object.keys(JSON.parse(valueOf("data").replace(/, \.\.\.\}$/, "}")) as object);
  return { names, id: valueOf("id"), fields };
}

test("systemd finds nothing wrong with the units", () => {
  if (isWithout("systemd-analyze")) return;
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-units-"));
  const units = ["watchkeeper.service", "watchkeeper.socket"].map((name) => {
    const file = join(folder, name);
    // This machine does not have the program at the path of the package.
    const text = readFileSync(`config/systemd/${name}`, "utf8");
    writeFileSync(file, text.replaceAll(/^(Exec\w+=)\S*watchkeeper/gm, "$1/bin/true"));
    return file;
  });
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...units], {
    encoding: "utf8",
  });
  rmSync(folder, { recursive: true });
  const own = stderr.split("\n").filter((line) => line.includes("watchkeeper"));
  assert.equal(own, []);
  assert.is(status, 0, stderr);
});

test.run();
