import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { type Context, kubeconfigFiles, readContext } from "../../../../src/ops/cli/setup/kubeconfig.ts";

const test = suite("ops/cli/setup/kubeconfig");
const directory = mkdtempSync(join(tmpdir(), "kubeconfig-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

function written(name: string, config: object | string): string {
  const file = join(directory, name);
  writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
  return file;
}

function read(files: readonly string[], wanted?: string): Context {
  const outcome = readContext(files, wanted);
  if (outcome instanceof Failure) throw new Error(outcome.message);
  // Copies the result, because the reader's objects have no prototype, and `assert.equal` would report that as a
  // difference.
  return JSON.parse(JSON.stringify(outcome)) as Context;
}

function refusal(files: readonly string[], wanted?: string): string {
  const outcome = readContext(files, wanted);
  return outcome instanceof Failure ? outcome.message : "none";
}

/** Returns a kubeconfig with one context. The context, its cluster and its user have the same name. */
const of = (name: string, cluster: object = {}, user: object = {}): object => ({
  "current-context": name,
  clusters: [{ name, cluster }],
  users: [{ name, user }],
  contexts: [{ name, context: { cluster: name, user: name, namespace: `ns-${name}` } }],
});

test("the flag's file, else the variable's list, else the home directory", () => {
  assert.equal(kubeconfigFiles("f", { KUBECONFIG: "g" }), ["f"]);
  assert.equal(kubeconfigFiles(undefined, { KUBECONFIG: `a${delimiter}${delimiter}b` }), ["a", "b"]);
  assert.equal(kubeconfigFiles(undefined, { HOME: "/home/x" }), ["/home/x/.kube/config"]);
});

test("the current context, or the one asked for, with everything its entries say", () => {
  const two = {
    ...of("a"),
    ...of("b", { server: "s", extensions: [{ name: "e" }] }, { tokenFile: "/t", odd: 1 }),
  };
  const file = written("two", two);
  const { name, namespace, cluster, user } = read([file]);
  assert.equal([name, namespace], ["b", "ns-b"]);
  assert.equal(
    [cluster, user],
    [
      { server: "s", extensions: [{ name: "e" }] },
      { tokenFile: "/t", odd: 1 },
    ],
  );
  assert.is(read([written("none", { ...of("a"), "current-context": "" })], "a").name, "a");
});

test("of several files the first word counts, and one that is not there is passed over", () => {
  const first = written("first", { "current-context": "b", users: [{ name: "b", user: { token: "mine" } }] });
  const second = written("second", of("b", { server: "s" }, { token: "theirs" }));
  assert.is(read([join(directory, "absent"), first, second]).user["token"], "mine");
  assert.match(refusal([join(directory, "absent")]), /absent" does not exist$/);
});

test("paths start at their own file, commands from PATH stay", () => {
  const user = {
    "client-certificate": "c.crt",
    "client-key": "/k",
    exec: { command: "./plugin", args: ["x"] },
  };
  const { cluster, user: read1 } = read([written("paths", of("a", { "certificate-authority": "ca" }, user))]);
  assert.is(cluster["certificate-authority"], join(directory, "ca"));
  assert.equal(read1, {
    "client-certificate": join(directory, "c.crt"),
    "client-key": "/k",
    exec: { command: join(directory, "plugin"), args: ["x"] },
  });
  const named = read([written("named", of("a", {}, { exec: { command: "aws" } }))]);
  assert.equal(named.user["exec"], { command: "aws" });
});

test("what is not there is said by name, and a broken file by its place", () => {
  const file = written("good", of("a"));
  assert.match(refusal([file], "z"), 'no context "z"');
  assert.match(refusal([written("empty", {})]), "There is no current context");
  assert.match(refusal([written("torn", { ...of("a"), clusters: [] })]), "has no existing cluster");
  assert.match(refusal([written("broken", "a: [\nb: 1\n")]), /broken:2:1/);
});

test("a broken file's message holds nothing of what stood in it", () => {
  assert.not.match(refusal([written("secret", "users:\n- token: hush: hush\n")]), "hush");
});

test.run();
