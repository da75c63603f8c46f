import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { KubernetesChild } from "../../../src/discovery/kubernetes-child.ts";
import { within } from "../../support/within.ts";

const test = suite("discovery/kubernetes-child");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-asked-"));
const children: KubernetesChild[] = [];
test.after(() => {
  for (const child of children) child.kill();
  rmSync(directory, { recursive: true, force: true });
});

function played(name: string, code: string): KubernetesChild {
  const file = join(directory, `${name}.mjs`);
  writeFileSync(file, `process.on("disconnect", () => process.exit());\n${code}`);
  const child = new KubernetesChild("review", file);
  children.push(child);
  return child;
}

/** What a message says to question `id`. */
function saidTo(message: unknown, id: number): string | undefined {
  const { id: to, said } = message as { readonly id: number; readonly said: string };
  return to === id ? said : undefined;
}

const ask = (child: KubernetesChild, word: string): Promise<string | Failure> =>
  within(10_000, "an answer", child.ask({ word }, saidTo));

test("many questions at once each get their own answer, in whatever order", async () => {
  const child = played(
    "slow",
    `process.on("message", ({ id, word }) =>
      setTimeout(() => process.send({ id, said: word + "!" }), 50 - id));`,
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

test("when it dies everybody who waits hears of it, by its name, and the next question has another", async () => {
  const child = played(
    "dying",
    `process.on("message", ({ id, word }) => {
      if (word === "die") throw new TypeError("what is this");
      if (word !== "wait") process.send({ id, said: "well" });
    });`,
  );
  const waiting = ask(child, "wait");
  const dying = await ask(child, "die");
  const waited = await waiting;
  for (const outcome of [dying, waited])
    assert.match(
      outcome instanceof Failure ? outcome.message : outcome,
      /^The review child ended with 1: .*what is this/,
    );
  assert.is(await ask(child, "hello"), "well");
});

test.run();
