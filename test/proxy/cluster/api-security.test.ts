import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import type { AccessConfig } from "../../../src/ops/config/admin.ts";
import { apiCertificates, apiSecurityOf, closeApiSecurity } from "../../../src/proxy/cluster/api-security.ts";
import { testPki } from "../../support/pki.ts";

const test = suite("proxy/cluster/api-security");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-door-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

const open: AccessConfig = { authorization: undefined, tls: undefined };

test("an API without either has a door that stands open", async () => {
  const door = await apiSecurityOf(open, {
    name: "admin",
    journal: new Journal(wallClock),
    clusterOf: () => undefined,
  });
  assert.equal(door, { name: "admin", tls: undefined, reviewer: undefined, audiences: [] });
  assert.equal(apiCertificates(door), []);
  closeApiSecurity(door);
});

test("its certificate is listed once it is good, and a bad one is told and waited for", async () => {
  const { serving } = await testPki();
  const [certFile, keyFile] = [join(directory, "a.crt"), join(directory, "a.key")];
  const journal = new Journal(wallClock);
  const told: string[] = [];
  journal.subscribe(({ kind }) => told.push(kind));
  const config = { ...open, tls: { certFile, keyFile, reloadIntervalMs: 100 } };
  const door = await apiSecurityOf(config, { name: "admin", journal, clusterOf: () => undefined });
  assert.equal([told, apiCertificates(door)], [["certificate.refused"], []]);
  writeFileSync(certFile, serving.certificate);
  writeFileSync(keyFile, serving.key);
  await door.tls?.certificate.reload();
  assert.equal(
    apiCertificates(door).map(({ purpose, name }) => [purpose, name]),
    [["serving", "admin"]],
  );
  closeApiSecurity(door);
});

test("a cluster that a reload has taken away is asked no more", async () => {
  const authorization = { cluster: "eu", kubeconfigFile: undefined, audiences: ["watchkeeper"] };
  const asked: string[] = [];
  const clusterOf = (name: string): undefined => void asked.push(name);
  const door = await apiSecurityOf(
    { ...open, authorization },
    { name: "admin", journal: new Journal(wallClock), clusterOf },
  );
  const outcome = await door.reviewer?.ask({ kind: "TokenReview", path: "/x", body: {} });
  assert.instance(outcome, Failure);
  assert.equal([asked, door.audiences], [["eu"], ["watchkeeper"]]);
  closeApiSecurity(door);
});

test.run();
