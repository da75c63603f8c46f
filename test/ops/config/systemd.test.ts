/**
 * The systemd unit. No test starts it, because no machine of the tests runs systemd as process 1; what a process tells
 * systemd is in test/processes/cli/serve/handover.test.ts.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("ops/config/systemd");
const unit = "config/systemd/watchkeeper.service";
const text = readFileSync(unit, "utf8");
const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasAnalyze) process.stdout.write("skip: the unit's exposure needs systemd-analyze\n");

(hasAnalyze ? test : test.skip)("the unit's exposure is at most 3.0 by `systemd-analyze security`", () => {
  const args = ["security", "--offline=yes", "--threshold=30", unit];
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
  assert.is(status, 0, stdout + stderr);
  const [, exposure = ""] = /exposure level for watchkeeper\.service: ([\d.]+)/.exec(stdout) ?? [];
  assert.ok(Number(exposure) > 0 && Number(exposure) <= 3, exposure);
});

test("the service is ready when watchkeeper says so, and its children may say it", () => {
  assert.match(text, /^Type=notify$/m);
  assert.match(text, /^NotifyAccess=all$/m);
  assert.match(text, /^RestrictAddressFamilies=.*\bAF_UNIX\b/m);
});

test("before the start, `check` ends the start for an invalid configuration, and for nothing less", () => {
  const [, command = ""] = /^ExecStartPre=\/bin\/sh -c '(.+)'$/m.exec(text) ?? [];
  assert.match(command, "watchkeeper check --offline --config /etc/watchkeeper/watchkeeper.yaml");
  const start = (code: number): number | null =>
    spawnSync("sh", ["-c", `watchkeeper() { return ${code}; }\n${command.replaceAll("$$", "$")}`]).status;
  assert.equal([0, 1, 2].map(start), [0, 0, 1]);
});

test.run();
