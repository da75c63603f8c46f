import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { certificateFromPlugin } from "../../../../src/ops/cli/setup/exec-credential.ts";

const test = suite("ops/cli/setup/exec-credential");

/** Runs a credential plugin whose code is `program`, and returns the outcome as text. */
async function come(program: string, more: object = {}): Promise<string> {
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: process.execPath,
    args: ["-e", program],
    ...more,
  };
  const outcome = await certificateFromPlugin({
    name: "u",
    namespace: undefined,
    cluster: {},
    user: { exec },
  });
  if (outcome instanceof Failure) return outcome.message;
  return outcome === undefined ? "none" : `${outcome.certificate} ${outcome.key}`;
}

const prints = (status: object): string =>
  `console.log(${JSON.stringify(JSON.stringify({ kind: "ExecCredential", status }))})`;

test("a certificate is taken, a token is left to the client", async () => {
  assert.is(await come(prints({ clientCertificateData: "C", clientKeyData: "K" })), "C K");
  assert.is(await come(prints({ token: "t" })), "none");
});

test("it has the environment that kubectl would give it, and its own", async () => {
  const program = `const { spec, apiVersion } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
    if (apiVersion.endsWith("/v1") && !spec.interactive && process.env.MINE === "1") ${prints({ clientCertificateData: "C", clientKeyData: "K" })}`;
  assert.is(await come(program, { env: [{ name: "MINE", value: "1" }] }), "C K");
});

test("one that must talk with its user is not run, and a user without a plugin has none", async () => {
  assert.is(await come("process.exit(1)", { interactiveMode: "Always" }), "none");
  const user = { token: "t" };
  assert.is(await certificateFromPlugin({ name: "u", namespace: undefined, cluster: {}, user }), undefined);
});

test("what goes wrong is told in the plugin's words, and never in its output's", async () => {
  assert.match(await come('console.error("log in first"); process.exit(1)'), "failed: log in first");
  assert.match(await come("", { command: "/nowhere/plugin" }), /ENOENT/);
  const garbled = await come('console.log("hush-hush {")');
  assert.match(garbled, "printed no ExecCredential");
  assert.not.match(garbled, "hush");
  assert.match(await come('console.log("{}")'), "printed no ExecCredential");
});

test.run();
