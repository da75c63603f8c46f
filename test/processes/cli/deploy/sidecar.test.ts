import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { command, endCommands } from "../../../support/command.ts";
import { freePort } from "../../../support/free-port.ts";
import { testPki } from "../../../support/pki.ts";
import { Target } from "../../../support/target.ts";

const test = suite("ops/cli/deploy/sidecar");

const root = mkdtempSync(join(tmpdir(), "watchkeeper-sidecar-"));
const pod = { direct: join(root, "direct"), shared: join(root, "shared"), state: join(root, "state") };
let target: Target;

test.before(async () => {
  target = await Target.start();
  for (const directory of [pod.direct, pod.shared]) mkdirSync(directory);
  const { authority } = await testPki();
  writeFileSync(join(pod.direct, "ca.crt"), authority.certificate);
  writeFileSync(join(pod.direct, "token"), "the-pods-token");
  writeFileSync(join(pod.direct, "namespace"), "default");
});
test.after(() => {
  endCommands();
  target.stop();
  rmSync(root, { recursive: true, force: true });
});

/** Sends a request as an in-cluster client does: to the IP address, with the CA and token of the pod. */
function get(port: number): Promise<number | undefined> {
  const ca = readFileSync(join(pod.shared, "ca.crt"));
  const authorization = `Bearer ${readFileSync(join(pod.shared, "token"), "utf8")}`;
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: "/api", ca, agent: false, headers: { authorization } };
    const request = https.get(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("error", reject);
  });
}

const service = (): Record<string, string> => ({
  KUBERNETES_SERVICE_HOST: "127.0.0.1",
  KUBERNETES_SERVICE_PORT: String(target.port),
});

const flags = ["--direct", pod.direct, "--shared", pod.shared, "--state", pod.state];

test("in a pod it serves each client that reads the usual files, and says when it is ready", async () => {
  const [port, metrics] = [await freePort(), await freePort()];
  const started = command(
    ["sidecar", ...flags, "--port", `${port}`, "--metrics-port", `${metrics}`],
    service(),
  );
  await started.said('"to":"ready"');
  assert.is(await get(port), 200);
  const readyz = await fetch(`http://127.0.0.1:${metrics}/readyz`);
  assert.is(readyz.status, 200, await readyz.text());
  started.child.kill("SIGTERM");
  assert.is(await started.ended, 0);
  assert.not.match(started.text(), "the-pods-token");
});

test("outside of a pod it says what it misses", async () => {
  const { KUBERNETES_SERVICE_HOST: _, ...none } = service();
  const outside = command(["sidecar", ...flags], none);
  assert.is(await outside.ended, 2);
  assert.match(outside.text(), "a sidecar runs in a pod");
  const bare = command(["sidecar", ...flags, "--direct", join(root, "none")], service());
  assert.is(await bare.ended, 2);
  assert.match(bare.text(), /token" cannot be read/);
});

test("what it is can be printed, and a port that is none is refused", async () => {
  const printed = command(["sidecar", "--print-config"], service());
  assert.is(await printed.ended, 0);
  assert.match(printed.text(), `url: "https://127.0.0.1:${target.port}"`);
  const strange = command(["sidecar", "--port", "99999"], service());
  assert.is(await strange.ended, 2);
  assert.match(strange.text(), "--port must be a whole number from 1 to 65535");
});

test.run();
