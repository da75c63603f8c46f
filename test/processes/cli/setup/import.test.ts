import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("ops/cli/setup/import");
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-import-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

function imported(...args: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync("bin/watchkeeper.js", ["import", ...args]);
  return { code: status, out: stdout.toString(), err: stderr.toString() };
}

function written(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

test("a haproxy.cfg becomes a configuration that `check` finds valid", () => {
  const file = written(
    "haproxy.cfg",
    "listen kube\n  bind :8443\n  balance leastconn\n  bind :80\n  server cp-1 10.0.0.11:6443 verify none\nglobal\n  daemon\n",
  );
  const { code, out, err } = imported(file);
  assert.is(code, 0, err);
  for (const line of [3, 4, 5, 6]) assert.match(err, `haproxy.cfg:${line}:`);
  assert.match(err, /note: set .*caFile: .* The printed path is a guess\./);
  const { stdout } = spawnSync("bin/watchkeeper.js", ["check", "--offline", "-c", written("out.yaml", out)]);
  assert.match(stdout.toString(), "valid, listeners: 1, backends: 1");
});

test("an envoy.yaml is told by its name; nothing to take over is 1, wrong words are 2", () => {
  const endpoint = "{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 6443}}}}";
  const cluster = `{name: k, load_assignment: {endpoints: [{lb_endpoints: [${endpoint}]}]}}`;
  const file = written("envoy.yaml", `static_resources: {clusters: [${cluster}]}\n`);
  assert.match(imported(file).out, 'url: "https://10.0.0.1:6443"');
  assert.match(imported(file, "--from", "other").err, 'it has no "other", but "k"');
  assert.is(imported(written("empty.cfg", "global\n")).code, 1);
  for (const args of [[], [file, file], [join(directory, "absent.cfg")]])
    assert.is(imported(...args).code, 2);
});

test.run();
