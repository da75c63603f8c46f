/**
 * Checks that no comment or page calls a machine "somebody" or the like: each sentence names the client, the backend,
 * the connection or the operator. CONTRIBUTING says how to write comments and pages.
 */
import { globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("plain-english");

/** Each banned word, with advice on what to write instead. */
const instead: Readonly<Record<string, string>> = {
  somebody: "name the client, the backend or the operator",
  someone: "name the client, the backend or the operator",
  anybody: "name the client, the backend or the operator",
  nobody: '"no client", "no backend", "none"',
  whoever: '"the client that", "each backend that"',
  whom: '"which client", "for which"',
  "left out": '"default: …", "not set", "omitted"',
};

const pages = [
  "src/**/*.{ts,js,html}",
  "demo/**/*.ts",
  "docs/**/*.md",
  "deploy/**/*.{md,yaml,tpl}",
  "config/**/*.{yaml,json}",
  "test/**/*.{ts,md,go}",
  "bench/**/*.{ts,md,go}",
  "*.md",
];
/** This file contains the list of banned words. */
const exempt = new Set(["test/plain-english.test.ts"]);
/** Names in the requests and configurations of tests, which are part of no sentence. */
const names =
  /"nobody"|\[nobody\]|\bnobody-knows-this-token\b|\bnobody\.example\b|\bX-Remote-User: (nobody|someone)\b/gi;

function found(text: string): string[] {
  const sentences = text.replaceAll(names, "");
  return Object.keys(instead).filter((word) => new RegExp(`\\b${word}\\b`, "i").test(sentences));
}

test("comments, titles, texts and pages name the machine that they speak of", () => {
  const broken = globSync(pages)
    .filter((file) => !exempt.has(file))
    .flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line, at) =>
          found(line).map((word) => `${file}:${at + 1}: ${word}; write ${instead[word]}`),
        ),
    );
  assert.equal(broken, []);
});

test("a sentence with one of the words is found, and a name that contains it is not", () => {
  assert.equal(found("Nobody takes it, whoever asks"), ["nobody", "whoever"]);
  assert.equal(found("nobodyAsked"), []);
  assert.equal(found('["x-remote-user", "nobody"] of somebody'), ["somebody"]);
});

test.run();
