/** Configuration files: a Config, or problems with their places; never anything else, and nothing of Object's own. */
import { readFileSync } from "node:fs";
import { parseConfig } from "../../../src/config.ts";
import { limits } from "../../../src/limits.ts";
import { isProblems, lineOf } from "../../../src/problem.ts";
import type { Target } from "../target.ts";

const sample = (name: string): string =>
  readFileSync(new URL(`../../../config/${name}.yaml`, import.meta.url), "utf8").replaceAll(/ *#.*$/gm, "");

export const config: Target = {
  sources: [
    "config",
    "yaml-document",
    "config-schema",
    "config-rules",
    "config-passthrough",
    "problem",
    "duration",
    "address",
  ],
  seeds: [
    sample("static"),
    sample("sidecar"),
    sample("passthrough"),
    sample("discovery"),
    'listeners: [{name: a, address: "[::1]:0"}]\nupstream: {backends: [{name: b, url: "https://a"}]}\n',
    "a: &a [*a, *a]\n<<: *a\n? [x]\n: !!binary AAAA\n--- \nb\n",
  ],
  words: [
    "\n",
    "  ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "!!js/function ",
    "!!str ",
    "<<: *a\n",
    "__proto__: {}\n",
    "constructor: 1\n",
    "---\n",
    "%YAML 1.1\n",
    "listeners:\n",
    "upstream:\n",
    "backends:\n",
    "url: https://",
    "address: ",
    "127.0.0.1:0",
    "[::]:8443",
    "10s",
    "1e9h",
    "null",
    "~",
    "0x10",
    ".inf",
    "169.254.169.254",
    "http://u:p@h",
    "mode: passthrough",
    "identity: {clientCerts: front-proxy}",
    "discovery: {from: dns}",
  ],
  run(input) {
    const outcome = parseConfig(input.toString("utf8"), "x.yaml");
    if (Object.getOwnPropertyNames(Object.prototype).length !== 12)
      throw new Error("Object has another member");
    if (!isProblems(outcome)) {
      if (outcome.listeners.length === 0) throw new Error("nobody listens, and no problem is told");
      return;
    }
    if (outcome.length === 0 || outcome.length > limits.configProblems)
      throw new Error(`${outcome.length} problems`);
    for (const problem of outcome)
      if (problem.message === "" || !/^x\.yaml:\d+:\d+$/.test(problem.at)) throw new Error(lineOf(problem));
  },
};
