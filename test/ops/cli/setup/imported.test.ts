import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { chosenOf, configOf, guessedFiles, nameOf, urlOf } from "../../../../src/ops/cli/setup/imported.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/setup/imported");
const group = (name: string, port: number) => ({
  name,
  backends: [{ name: "a", url: `https://10.0.0.1:${port}` }],
  notes: [],
});

test("the only group is it, else the only one with an apiserver's port, else the named one", () => {
  assert.equal(chosenOf([group("web", 80)], undefined), group("web", 80));
  assert.equal(chosenOf([group("web", 80), group("kube", 6443)], undefined), group("kube", 6443));
  const both = [group("one", 6443), group("two", 6443)];
  assert.equal(chosenOf(both, "two"), group("two", 6443));
  const unclear = chosenOf(both, undefined);
  const absent = chosenOf(both, "three");
  const none = chosenOf([], undefined);
  if (!(unclear instanceof Failure && absent instanceof Failure && none instanceof Failure))
    throw new Error("taken");
  assert.match(unclear.message, 'it has "one", "two": choose one with --from');
  assert.match(absent.message, 'no "three"');
  assert.match(none.message, "no servers");
});

test("what is printed is a good configuration, whatever the names are", () => {
  const backends = [{ name: nameOf("--CP_1 (old)--"), url: "https://[fd00::1]:6443" }];
  const text = configOf({ name: 'a"b\nc', backends, notes: [] }, "x.cfg", "Passthrough");
  const config = parseConfig(text, "x.cfg");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  assert.equal(
    [config.listeners[0]?.mode, config.clusters[0].backends[0]?.name],
    ["Passthrough", "cp-1-old"],
  );
});

test("with mode HTTP watchkeeper terminates TLS, and the file begins with the keys that the operator must set", () => {
  const text = configOf(group("kube", 6443), "x.cfg", "HTTP");
  const config = parseConfig(text, "x.cfg");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const [listener] = config.listeners;
  assert.equal([listener?.mode, listener?.tls?.identity.clientCerts], ["HTTP", "FrontProxy"]);
  for (const key of [
    "listeners[0].tls.certFile and keyFile",
    "listeners[0].tls.clientCAFile",
    "clusters[0].tls.frontProxy.certFile and keyFile",
    "clusters[0].tls.caFile",
  ])
    assert.match(text, `\n# - ${key}: `);
});

test("without client certificates, what the comment names can be removed", () => {
  const text = configOf(group("kube", 6443), "x.cfg", "HTTP")
    .replace(/^ +(clientCAFile|identity): .*\n/gm, "")
    .replace(/^ +frontProxy: .*\n.*\n.*\n/m, "");
  assert.not.match(text, /^ +(clientCAFile|identity|frontProxy):/m);
  const config = parseConfig(text, "x.cfg");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  assert.is(config.listeners[0]?.tls?.identity.clientCerts, "Reject");
});

test("a CA that the imported file names is no guess", () => {
  const named = { ...group("kube", 6443), caFile: "/etc/ssl/ca.pem" };
  assert.equal(guessedFiles(named, "Passthrough"), []);
  assert.not.match(configOf(named, "x.cfg", "Passthrough"), "guess");
  const keys = guessedFiles(named, "HTTP").map((one) => one.keys);
  assert.is(keys.length, 3);
  assert.not.match(keys.join(), "caFile");
});

test("an address is a host and a port, or none", () => {
  assert.is(urlOf("10.0.0.1", "6443"), "https://10.0.0.1:6443");
  assert.is(urlOf("fd00::1", "6443"), "https://[fd00::1]:6443");
  for (const [host, port] of [
    ["", "1"],
    ["a", ""],
    ["a b", "1"],
    ["a", "99999"],
    ["a", "x"],
  ] as const)
    assert.is(urlOf(host, port), undefined, `${host}:${port}`);
  assert.is(nameOf("___"), "backend");
});

test.run();
