/** Incident 003: the loopback certificate of an apiserver expired after a year, and no alert covered it. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { foundMs, Stage } from "../../../support/incident-stage.ts";
import { testPki } from "../../../support/pki.ts";

const test = suite("ops/incidents/whole/003-loopback-certificate");

test("one that ends within a month is told with its backend and its date, and the other backend is not", async () => {
  const { authority } = await testPki();
  const notAfter = wallClock.wall() + 20 * 86_400_000;
  const loopback = authority.issue({ name: "apiserver-loopback-client", notAfter });
  const since = performance.now();
  const stage = await Stage.start({ loopback });
  const readyMs = performance.now() - since;
  const { incident, ms } = await stage.found("loopback-certificate-expiring", since);
  console.log(
    `figure: a loopback certificate is an incident ${Math.round(ms)} ms after the start, ready after ${Math.round(readyMs)} ms`,
  );
  assert.ok(ms - readyMs <= foundMs, `${ms - readyMs} ms`);
  assert.equal([incident.backend, incident.subject], ["cp-2", "backend-loopback cp-2"]);
  assert.match(incident.summary, /expires in 19 days: not after /);
  assert.match(
    await stage.explained(incident),
    /backend-loopback cp-2[^]*only a restart renews it[^]*19 days/,
  );
  assert.match(stage.logged("loopback-certificate-expiring"), "expires in 19 days");
  const alert = { alertname: "WatchkeeperLoopbackCertificateExpiring", backend: "cp-2" };
  assert.is(await stage.wrongAlerts(alert), undefined);
  assert.is((await stage.incidents()).length, 1);
  await stage.stop();
});

test.run();
