import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { importFile } from "../../../../src/ops/cli/setup/import.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";
import { KeptScreen } from "../../../support/api-server.ts";

const test = suite("ops/cli/setup/import");
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-import-"));
const haproxy = join(directory, "haproxy.cfg");
const envoy = join(directory, "envoy.yaml");
writeFileSync(haproxy, "listen api\n  bind *:8443\n  server cp1 10.0.0.11:6443 check backup\n");
writeFileSync(
  envoy,
  `static_resources:
  clusters:
    - name: kube
      load_assignment:
        endpoints:
        - lb_endpoints:
          - endpoint: {address: {socket_address: {address: 10.0.0.11, port_value: 6443}}}
`,
);
test.after(() => rmSync(directory, { recursive: true }));

async function imported(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen();
  return Object.assign(screen, { code: await importFile(args, screen) });
}

function modeOf(text: string): string {
  const config = parseConfig(text, "watchkeeper.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config.listeners[0]?.mode ?? "none";
}

for (const file of [haproxy, envoy])
  test(`--mode says where TLS ends: ${file.endsWith("cfg") ? "haproxy.cfg" : "envoy.yaml"}`, async () => {
    const usual = await imported(file);
    assert.equal([usual.code, modeOf(usual.out)], [0, "Passthrough"]);
    assert.is((await imported(file, "--mode", "Passthrough")).out, usual.out);
    const terminated = await imported("--mode", "HTTP", file);
    assert.equal([terminated.code, modeOf(terminated.out)], [0, "HTTP"]);
    const guesses = (text: string): number =>
      text.split("\n").filter((line) => /^note: set .* The printed path is a guess\.$/.test(line)).length;
    assert.equal([guesses(usual.complaints), guesses(terminated.complaints)], [1, 4]);
  });

test("notes on lost settings go to stderr, in either mode", async () => {
  for (const mode of ["HTTP", "Passthrough"])
    assert.match(
      (await imported(haproxy, "--mode", mode)).complaints,
      'haproxy.cfg:3: "backup" of server "cp1"',
    );
});

test("another mode is a usage error; an absent backend and an unreadable file are errors", async () => {
  const wrong = await imported(haproxy, "--mode", "http");
  assert.equal([wrong.code, wrong.out], [2, ""]);
  assert.match(wrong.complaints, '--mode must be one of HTTP, Passthrough, not "http"');
  assert.is((await imported(haproxy, "--from", "other")).code, 1);
  assert.is((await imported(join(directory, "absent.cfg"))).code, 2);
});

test.run();
