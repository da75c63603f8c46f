/**
 * Incident 000: one invalid secret took a whole ingress down. The proxy must report it within seconds, and keep serving
 * with the last valid one.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { foundMs, Stage } from "../../../support/incident-stage.ts";
import { testPki } from "../../../support/pki.ts";

const test = suite("ops/incidents/whole/000-bad-secret");

test("a key that is another certificate's is named, costs no client anything, and is over when a good one is back", async () => {
  const stage = await Stage.start({ listenerTls: "reloadInterval: 1s" });
  const { authority, serving } = await testPki();
  const other = authority.issue({ name: "other", hosts: ["localhost"] });
  const file = join(stage.proxy.directory, "tls.key");
  const since = performance.now();
  writeFileSync(file, other.key, { mode: 0o600 });
  const { incident, ms } = await stage.found("certificate-refused", since);
  console.log(`figure: a bad secret is an incident after ${Math.round(ms)} ms`);
  assert.ok(ms <= foundMs, `${ms} ms`);
  assert.is(incident.subject, "kube");
  assert.match(incident.evidence[0]?.text ?? "", "tls.key");
  assert.match(
    await stage.explained(incident),
    /certificate-refused {2}kube[^]*tls\.key[^]*WatchkeeperCertificateRefused/,
  );
  assert.match(stage.logged("certificate-refused"), '"subject":"kube"');
  assert.is(await stage.wrongAlerts({ alertname: "WatchkeeperCertificateRefused" }), undefined);
  assert.is(await stage.caller({ "user-agent": "kubectl/v1" }).ask("GET /api/v1/namespaces"), 200);
  writeFileSync(file, serving.key, { mode: 0o600 });
  await stage.ended("certificate-refused");
  assert.is(await stage.wrongAlerts(), undefined, "and no alert is left");
  assert.is((await stage.incidents()).length, 1, "and nothing else was wrong");
  await stage.stop();
});

test.run();
