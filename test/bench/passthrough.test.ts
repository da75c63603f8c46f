import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { direct } from "../../bench/peers/direct.ts";
import { haproxy } from "../../bench/peers/haproxy.ts";
import { nghttpx } from "../../bench/peers/nghttpx.ts";
import { watchkeeperAt } from "../../bench/peers/watchkeeper.ts";
import { fitFor } from "../../bench/rounds.ts";
import { scenario } from "../../bench/scenarios/passthrough.ts";
import { scenario as small } from "../../bench/scenarios/small-8x16.ts";
import { find } from "../../bench/tools.ts";
import { parseConfig } from "../../src/ops/config/config.ts";

const test = suite("bench/passthrough");

const dir = mkdtempSync(join(tmpdir(), "watchkeeper-bench-passthrough-"));
test.after(() => rmSync(dir, { recursive: true, force: true }));

const place = {
  port: 8443,
  metricsPort: 7481,
  backendPort: 6443,
  dir,
  caFile: "/ca.crt",
  certFile: "/tls.crt",
  keyFile: "/tls.key",
};
const ours = watchkeeperAt("watchkeeper", "/nowhere");

test("those that can leave TLS to the backend take part, as that; the others in everything else", () => {
  const all = [ours, nghttpx, haproxy, direct];
  assert.equal(
    fitFor(scenario, all).map(({ name }) => name),
    ["watchkeeper", "haproxy", "direct"],
  );
  assert.equal(fitFor(scenario, [haproxy])[0]?.settings, haproxy.passthrough?.settings);
  assert.equal(fitFor(small, all), all);
});

test("watchkeeper is a passthrough by its configuration", () => {
  const command = ours.passthrough?.command(place) ?? [];
  const config = parseConfig(readFileSync(command.at(-1) ?? "", "utf8"), "a.yaml");
  if (!("listeners" in config)) return assert.equal(config, []);
  assert.equal(
    config.listeners.map(({ mode, tls }) => [mode, tls]),
    [["Passthrough", undefined]],
  );
});

test("HAProxy takes its configuration, and splices", () => {
  const command = haproxy.passthrough?.command(place) ?? [];
  const file = command.at(-1) ?? "";
  assert.match(readFileSync(file, "utf8"), /^ +mode tcp$/m);
  const program = find("haproxy");
  if (program === undefined) {
    console.log("haproxy is not installed: its own check is skipped");
    return;
  }
  const { status, stderr } = spawnSync(program, ["-c", "-q", "-f", file], { encoding: "utf8" });
  assert.is(status, 0, stderr);
});

test.run();
