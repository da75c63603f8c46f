import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { kubernetesSource } from "../../../src/ops/discovery/discover.ts";
import type { Discovered } from "../../../src/ops/discovery/discovered.ts";
import type { Source } from "../../../src/ops/discovery/discovery.ts";
import { KubernetesChild } from "../../../src/ops/discovery/kubernetes-child.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/kubernetes-source");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-child-"));
const sources: Source[] = [];
test.after(() => {
  for (const source of sources) source.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Returns a source whose child process runs `code` for each query. The code may use `listOf(host, port)`. */
function played(name: string, code: string): Source {
  const file = join(directory, `${name}.mjs`);
  const listOf = `const listOf = (host, port) => {
    const annotations = { "kubernetes.io/peer-advertise-address": host + ":" + port };
    return { items: [{ metadata: { name: "apiserver-" + "a".repeat(26), annotations } }] };
  };`;
  writeFileSync(file, `process.on("disconnect", () => process.exit());\n${listOf}\n${code}`);
  return sourceWith(file);
}

function sourceWith(file: string): Source {
  const access = () => ({ servers: [], caFile: "ca", serverName: undefined });
  const child = new KubernetesChild({ kubeconfigFile: "k", access, name: "discovery", file });
  const source = kubernetesSource("Lease", child, access);
  sources.push(source);
  return source;
}

const answerOf = (source: Source): Promise<readonly Discovered[] | Failure> =>
  within(10_000, "an answer", source.ask());

function messageIn(outcome: readonly Discovered[] | Failure): string {
  return outcome instanceof Failure ? outcome.message : JSON.stringify(outcome);
}

test("one child answers question after question, and noise between them is no answer", async () => {
  const source = played(
    "good",
    `process.on("message", ({ id }) => {
      process.send("noise");
      process.send({ id: id - 1, answer: listOf("10.0.0.9", 9) });
      process.send({ id, answer: listOf("10.0.0." + id, process.pid % 1000 + 1) });
    });`,
  );
  const [first, second] = [await answerOf(source), await answerOf(source)];
  assert.match(messageIn(first), '"host":"10.0.0.1"');
  assert.match(messageIn(second), '"host":"10.0.0.2"');
  const portIn = (outcome: readonly Discovered[] | Failure): number | undefined =>
    outcome instanceof Failure ? undefined : outcome[0]?.port;
  assert.is(portIn(first), portIn(second));
});

test("a child that dies is one failed look with its last words, and the next look has another", async () => {
  const source = played(
    "dying",
    `process.on("message", ({ id }) => {
      if (id === 1) throw new TypeError("what is this");
      process.send({ id, answer: listOf("10.0.0.1", 1) });
    });`,
  );
  assert.match(messageIn(await answerOf(source)), /^The discovery child ended with 1: .*what is this/);
  assert.match(messageIn(await answerOf(source)), "10.0.0.1");
});

test("a child that hangs is ended when it is given up", async () => {
  const source = played("hanging", `process.on("message", () => { for (;;); });`);
  const answer = answerOf(source);
  setTimeout(() => source.giveUp(), 300);
  assert.match(messageIn(await answer), "ended with SIGKILL");
});

test("a child that is not there is a failed look", async () => {
  const source = sourceWith(join(directory, "absent.mjs"));
  assert.match(messageIn(await answerOf(source)), /^The discovery child /);
});

test.run();
