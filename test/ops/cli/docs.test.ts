import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { docs } from "../../../src/ops/cli/docs.ts";
import { KeptScreen } from "../../support/api-server.ts";

const test = suite("ops/cli/docs");

async function asked(
  args: readonly string[],
  folder?: string,
): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen();
  return Object.assign(screen, { code: await docs(args, screen, folder) });
}

test("a topic is printed as it is shipped, and so is a runbook", async () => {
  for (const topic of ["faq", "incidents/004", "runbooks/WatchkeeperDown"]) {
    const { out, code } = await asked([topic]);
    assert.equal([out, code], [readFileSync(`docs/${topic}.md`, "utf8"), 0]);
  }
});

test("without a topic, all topics are listed, one a line", async () => {
  const { out, code } = await asked([]);
  const topics = out.split("\n");
  for (const topic of ["faq", "incidents/004", "runbooks/WatchkeeperDown"]) assert.ok(topics.includes(topic));
  assert.equal(topics.slice(0, -1), topics.slice(0, -1).toSorted());
  assert.is(code, 0);
});

test("an unknown topic is a usage error with the list; a path that leaves the folder is one too", async () => {
  for (const topic of ["no-such", "../README", "faq.md", "/etc/passwd"]) {
    const { out, complaints, code } = await asked([topic]);
    assert.equal([out, code], ["", 2], topic);
    assert.match(complaints, `Unknown topic ${JSON.stringify(topic)}: must be one of README, admin-api, `);
  }
});

test("a program without its docs says so, and where they are", async () => {
  const { out, complaints, code } = await asked(["faq"], "/nonexistent");
  assert.equal([out, code], ["", 1]);
  assert.is(complaints, "This installation has no docs folder: see docs in watchkeeper's repository\n");
});

test.run();
