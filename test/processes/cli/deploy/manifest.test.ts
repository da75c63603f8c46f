import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseAllDocuments } from "yaml";

const test = suite("ops/cli/deploy/manifest");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-manifest-"));
const file = join(directory, "app.yaml");
const pod = "kind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: a:1\n";

test.before(() => writeFileSync(file, pod));
test.after(() => rmSync(directory, { recursive: true, force: true }));

function manifest(args: readonly string[], input = ""): { code: number | null; out: string; err: string } {
  const all = ["bin/watchkeeper.js", "manifest", ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { input });
  return { code: status, out: stdout.toString(), err: stderr.toString() };
}

test("a file is printed with a sidecar and the image of --image, and stays as it is", () => {
  const said = manifest(["sidecar", "-f", file, "--image", "w:1"]);
  assert.equal([said.code, said.err], [0, ""]);
  assert.match(said.out, "image: w:1");
  assert.is(readFileSync(file, "utf8"), pod);
  assert.match(manifest(["sidecar", "-f", "-", "--image", "w:2"], pod).out, "image: w:2");
});

test("without --image, or with one that is no image, each manifest is 2, and the message says how to get one", () => {
  for (const words of [["static-pod"], ["static-pod", "--second"], ["deployment"], ["sidecar", "-f", file]]) {
    const { code, out, err } = manifest(words);
    assert.equal([code, out], [2, ""]);
    assert.match(
      err,
      "--image is missing: the name of watchkeeper's image in your registry. `npm run release`",
    );
    for (const image of ["", "a b", "w:1\nargs: []"])
      assert.match(manifest([...words, "--image", image]).err, "is not the name of an image");
  }
});

test("a program from a release's archive knows its image, which --image overrides", () => {
  const release = mkdtempSync(join(tmpdir(), "watchkeeper-released-"));
  try {
    for (const name of ["bin", "src", "demo", "config", "node_modules", "package.json"])
      symlinkSync(resolve(name), join(release, name));
    const image = `registry.example.com/watchkeeper@sha256:${"a".repeat(64)}`;
    writeFileSync(join(release, "image"), `${image}\n`);
    const print = (...more: string[]): string =>
      spawnSync(
        process.execPath,
        [
          "--preserve-symlinks",
          "--preserve-symlinks-main",
          join(release, "src/ops/cli/cli.ts"),
          "manifest",
          "static-pod",
          ...more,
        ],
        { encoding: "utf8" },
      ).stdout;
    assert.match(print(), `image: ${image}\n`);
    assert.match(print("--image", "w:1"), "image: w:1\n");
  } finally {
    rmSync(release, { recursive: true });
  }
});

test("what cannot have a sidecar is 1 and prints nothing, wrong words are 2", () => {
  const said = manifest(["sidecar", "-f", "-", "--image", "w:1"], "kind: Service\n");
  assert.equal([said.code, said.out], [1, ""]);
  for (const args of [
    ["sidecar"],
    ["sidecar", "-f", join(directory, "absent")],
    ["sidecar", "-f", file, "--image", "w:1", "--port", "0"],
    ["pod"],
  ])
    assert.is(manifest(args).code, 2, args.join(" "));
});

test("a static pod and its configuration are printed, for the apiservers that are named", () => {
  const printed = manifest(["static-pod", "--image", "w:1", "--metrics-port", "9000"]);
  assert.equal([printed.code, printed.err], [0, ""]);
  assert.match(printed.out, /kind: Pod[^]*image: w:1[^]*port: 9000/);
  const config = ["static-pod", "--print-config", "--backend", "cp-1=https://10.0.0.11:6443"];
  assert.match(manifest(config).out, '- {name: cp-1, url: "https://10.0.0.11:6443"}');
  assert.match(manifest([...config, "--passthrough"]).out, "mode: Passthrough");
  assert.match(manifest([...config, "--secure-metrics"]).out, 'metricsAddress: ":7481"');
  for (const args of [["--print-config"], [...config.slice(1), "--backend", "cp-2"], ["--port", "7481"]]) {
    const { code, out } = manifest(["static-pod", ...args]);
    assert.equal([code, out], [2, ""]);
  }
});

test("a deployment says which Secret is yours to make", () => {
  const said = manifest(["deployment", "--image", "w:1", "--namespace", "edge", "--replicas", "3"]);
  assert.is(said.code, 0);
  assert.match(said.out, /kind: Namespace[^]*name: edge[^]*replicas: 3[^]*image: w:1/);
  assert.match(said.err, 'the Secret "watchkeeper-tls" of namespace "edge"');
  for (const args of [
    ["--replicas", "1"],
    ["--namespace", "a b"],
  ])
    assert.is(manifest(["deployment", "--image", "w:1", ...args]).code, 2);
  for (const namespace of ["123", "1e5", "true", "yes"]) {
    const { out } = manifest(["deployment", "--image", "w:1", "--namespace", namespace]);
    assert.is(parseAllDocuments(out, { version: "1.1" })[1]?.toJS().metadata.namespace, namespace);
  }
});

test.run();
