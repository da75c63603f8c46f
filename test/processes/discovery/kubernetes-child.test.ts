import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { KubernetesChild } from "../../../src/ops/discovery/kubernetes-child.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/kubernetes-child");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-asked-"));
const children: KubernetesChild[] = [];
test.after(() => {
  for (const child of children) child.abort();
  rmSync(directory, { recursive: true, force: true });
});

function played(name: string, code: string): KubernetesChild {
  const file = join(directory, `${name}.mjs`);
  writeFileSync(file, `process.on("disconnect", () => process.exit());\n${code}`);
  const access = () => ({ servers: [], caFile: "ca", serverName: undefined });
  const child = new KubernetesChild({ kubeconfigFile: "k", access, name: "review", file });
  children.push(child);
  return child;
}

async function ask(child: KubernetesChild, path: string): Promise<unknown> {
  const asked = child.ask("", { path, timeoutMs: 1 });
  const outcome = await within(10_000, "an answer", asked);
  return outcome instanceof Failure ? outcome : outcome.answer;
}

test("many questions at once each get their own answer, in whatever order", async () => {
  const child = played(
    "slow",
    `process.on("message", ({ id, path }) =>
      setTimeout(() => process.send({ id, answer: path + "!" }), 50 - id));`,
  );
  const warnings: string[] = [];
  const warned = (warning: Error): void => void warnings.push(warning.message);
  process.on("warning", warned);
  const words = Array.from({ length: limits.reviewsAtOnce }, (_, at) => `w${at}`);
  assert.equal(
    await Promise.all(words.map((word) => ask(child, word))),
    words.map((word) => `${word}!`),
  );
  process.off("warning", warned);
  assert.equal(warnings, [], "of listeners that are too many");
});

test("when it dies every waiting caller gets its error, with its name, and the next question has another", async () => {
  const child = played(
    "dying",
    `process.on("message", ({ id, path }) => {
      if (path === "die") throw new TypeError("what is this");
      if (path !== "wait") process.send({ id, answer: "well" });
    });`,
  );
  const waiting = ask(child, "wait");
  const dying = await ask(child, "die");
  const waited = await waiting;
  for (const outcome of [dying, waited])
    assert.match(
      outcome instanceof Failure ? outcome.message : String(outcome),
      /^The review child ended with 1: .*what is this/,
    );
  assert.is(await ask(child, "hello"), "well");
});

test.run();
