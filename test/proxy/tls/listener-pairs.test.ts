import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { ServingCertificate } from "../../../src/proxy/tls/certificates.ts";
import { type PairRow, pairRows } from "../../support/listener-pairs.ts";
import { testPki } from "../../support/pki.ts";

const test = suite("proxy/tls/listener-pairs");

const directory = mkdtempSync(join(tmpdir(), "listener-pairs-"));
test.after(() => rmSync(directory, { recursive: true }));

const { serving } = await testPki();
const files = { certFile: join(directory, "tls.crt"), keyFile: join(directory, "tls.key") };

function write(certificate: string, key: string): void {
  writeFileSync(files.certFile, certificate);
  writeFileSync(files.keyFile, key);
}

/** Replaces a good pair by this one, as a renewal does. Returns why the good one stays; undefined: it was replaced. */
async function renewedBy({ chain, key }: PairRow): Promise<Failure | undefined> {
  const journal = new Journal(wallClock);
  write(serving.certificate, serving.key);
  const options = { name: "l", reloadIntervalMs: 60_000, clock: wallClock, journal, ...files };
  const certificate = await ServingCertificate.load(options);
  if (certificate instanceof Failure) throw new Error(certificate.message);
  const first = certificate.current?.pair.fingerprint;
  write(chain, key);
  const failure = await certificate.reload();
  assert.is(certificate.current?.pair.fingerprint === first, failure !== undefined);
  certificate.stop();
  return failure;
}

for (const row of pairRows)
  test(`a renewed pair with ${row.title} is ${row.isAccepted ? "loaded" : "refused, and the last one stays"}`, async () => {
    const failure = await renewedBy(row);
    assert.is(failure === undefined, row.isAccepted, failure?.message);
  });

test.run();
