import { X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { createAuthority, type Pair } from "../../../src/ops/pki/pki.ts";
import { loadCa } from "../../../src/proxy/tls/ca-bundle.ts";
import { type CertificateOptions, ServingCertificate } from "../../../src/proxy/tls/certificates.ts";
import { certificateRetryMs } from "../../../src/proxy/tls/reloading-file.ts";
import { serverTlsOptions } from "../../../src/proxy/tls/server-context.ts";
import { clockSkewMs } from "../../../src/proxy/tls/serving-pair.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/certificates");

const { authority, serving } = await testPki();
const newer = authority.issue({ name: "newer", hosts: ["localhost"] });
const rsa = authority.issue({ name: "rsa", hosts: ["localhost"], keyType: "rsa" });

let directory = "";
const undo: (() => void)[] = [];
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "certificates-"));
});
test.after.each(() => {
  for (const step of undo.splice(0)) step();
  rmSync(directory, { recursive: true });
});

function put({ certificate, key }: Pair): void {
  writeFileSync(join(directory, "tls.crt"), certificate);
  writeFileSync(join(directory, "tls.key"), key);
}

type Loading = {
  readonly outcome: ServingCertificate | Failure;
  readonly entries: readonly Entry[];
  readonly clock: ManualClock;
};

async function load(more: Partial<CertificateOptions> = {}): Promise<Loading> {
  const manual = manualClock();
  const wallMs = wallClock.wall();
  const clock = { ...manual, wall: () => wallMs + manual.now() };
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const outcome = await ServingCertificate.load({
    name: "kube",
    certFile: join(directory, "tls.crt"),
    keyFile: join(directory, "tls.key"),
    reloadIntervalMs: 1000,
    clock,
    journal,
    ...more,
  });
  if (!(outcome instanceof Failure)) undo.push(() => outcome.stop());
  return { outcome, entries, clock };
}

async function loaded(
  more: Partial<CertificateOptions> = {},
): Promise<Loading & { readonly outcome: ServingCertificate }> {
  const loading = await load(more);
  if (loading.outcome instanceof Failure) throw new Error(loading.outcome.message);
  return { ...loading, outcome: loading.outcome };
}

/** Returns the common name in the certificate that a new client gets. */
async function servedBy(certificate: ServingCertificate): Promise<string | undefined> {
  const server = net.createServer((socket) => {
    const secure = new tls.TLSSocket(socket, { isServer: true, secureContext: certificate.current?.context });
    secure.on("error", () => secure.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => server.close());
  const client = connectTo(server, {});
  await within(20_000, "the handshake", new Promise((resolve) => client.once("secureConnect", resolve)));
  const name = client.getPeerX509Certificate()?.subject;
  client.destroy();
  return name?.replace("CN=", "");
}

/**
 * Does not verify the server's certificate, so that the test can also inspect certificates that are expired or for
 * other names.
 */
function connectTo(server: net.Server, options: tls.ConnectionOptions): tls.TLSSocket {
  const { port } = server.address() as net.AddressInfo;
  const client = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
  client.on("error", () => client.destroy());
  undo.push(() => client.destroy());
  return client;
}

/** Lets the file watcher see a change, and lets everything finish that follows from the change. */
async function settle(clock: ManualClock): Promise<void> {
  for (let turns = 0; turns < 30; turns++) {
    clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const refusals = (entries: readonly Entry[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === "certificate.refused" ? [entry.problem.replace(/^.*"(?: \(only .*changed\))?: /, "")] : [],
  );

test("a good pair is loaded and served", async () => {
  put(serving);
  const { outcome, entries } = await loaded();
  assert.is(await servedBy(outcome), "watchkeeper");
  assert.is(outcome.current?.pair.notAfter, new X509Certificate(serving.certificate).validToDate.getTime());
  assert.equal(
    entries.map(({ kind }) => kind),
    ["certificate.loaded"],
  );
});

test("a bad pair at the start is a Failure that names the files", async () => {
  const { outcome, entries } = await load();
  const message = outcome instanceof Failure ? outcome.message.replaceAll(directory, "") : "";
  assert.is(message, 'Cannot use "/tls.crt": does not exist');
  assert.is(refusals(entries).length, 1);
});

const expired = authority.issue({
  name: "x",
  notBefore: wallClock.wall() - 2e6,
  notAfter: wallClock.wall() - 1e6,
});

/** The pairs of incident 000, and bad pairs that Node itself would accept (ecosystem F3). */
const badPairs: readonly (readonly [string, Pair, string])[] = [
  ["an empty certificate", { ...newer, certificate: "" }, "no certificate among its 0 characters"],
  ["an empty key", { ...newer, key: "" }, "no private key among the key file's 0 characters"],
  ["EC mixed with RSA", { ...newer, key: rsa.key }, 'the key of "CN=newer" is ec, the private key is rsa'],
  ["a PEM of garbage", { ...newer, certificate: "<nil>" }, "no certificate among its 5 characters"],
  [
    "another's key",
    { ...newer, key: serving.key },
    'the private key is not that of the certificate of "CN=newer"',
  ],
  ["an expired certificate", expired, "the certificate of "],
];

for (const [title, pair, problem] of badPairs) {
  test(`${title} is refused once, the last good one serves on, and a good one heals it (seed 000)`, async () => {
    put(serving);
    const { outcome, entries, clock } = await loaded();
    const context = outcome.current?.context;
    put(pair);
    await settle(clock);
    clock.advance(certificateRetryMs);
    await settle(clock);
    assert.is(outcome.current?.context, context);
    assert.is(await servedBy(outcome), "watchkeeper");
    assert.is(refusals(entries).length, 1);
    assert.ok(refusals(entries)[0]?.startsWith(problem), refusals(entries)[0]);
    put(newer);
    await settle(clock);
    assert.is(await servedBy(outcome), "newer");
  });
}

test("a refusal says which file has changed since the last good pair, if only one has", async () => {
  const changes: readonly (readonly [Pair, string])[] = [
    [{ ...serving, key: newer.key }, " (only the key file has changed): the private key is not that of the "],
    [{ ...newer, key: serving.key }, " (only the certificate file has changed): "],
    [{ ...newer, key: rsa.key }, '/tls.key": the key of '],
  ];
  for (const [pair, expected] of changes) {
    put(serving);
    const { entries, clock } = await loaded();
    put(pair);
    await settle(clock);
    const problems = entries.flatMap((entry) =>
      entry.kind === "certificate.refused" ? [entry.problem] : [],
    );
    assert.is(problems.length, 1);
    assert.ok(problems[0]?.includes(expected), problems[0]);
  }
});

test("a file that vanishes between two writes does no harm", async () => {
  put(serving);
  const { outcome, entries, clock } = await loaded();
  unlinkSync(join(directory, "tls.key"));
  await settle(clock);
  assert.equal(refusals(entries), ["does not exist"]);
  assert.is(await servedBy(outcome), "watchkeeper");
  put(rsa);
  await settle(clock);
  assert.is(await servedBy(outcome), "rsa");
});

test("a Secret's ..data link that is swapped changes both files at once", async () => {
  for (const [version, pair] of Object.entries({ v1: serving, v2: newer })) {
    mkdirSync(join(directory, version));
    writeFileSync(join(directory, version, "tls.crt"), pair.certificate);
    writeFileSync(join(directory, version, "tls.key"), pair.key);
  }
  symlinkSync("v1", join(directory, "..data"));
  for (const name of ["tls.crt", "tls.key"]) symlinkSync(`..data/${name}`, join(directory, name));
  const { outcome, entries, clock } = await loaded();
  symlinkSync("v2", join(directory, "..data_tmp"));
  renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
  await settle(clock);
  assert.is(await servedBy(outcome), "newer");
  assert.equal(refusals(entries), []);
});

test("a client CA that has ended does not take the place of one that holds", async () => {
  const gone = await createAuthority({ name: "gone", clock: wallClock, notAfter: wallClock.wall() - 1000 });
  const clientCaFile = join(directory, "clients.crt");
  put(serving);
  writeFileSync(clientCaFile, authority.certificate);
  const { outcome, entries, clock } = await loaded({ clientCaFile });
  const notAfter = outcome.current?.clientCaNotAfter;
  writeFileSync(clientCaFile, gone.certificate);
  await settle(clock);
  assert.match(refusals(entries)[0] ?? "", 'the certificate of "CN=gone" expired at');
  assert.is(outcome.current?.clientCaNotAfter, notAfter);
  put(newer);
  await settle(clock);
  assert.is(await servedBy(outcome), "newer", "a bad CA keeps no good certificate out");
  writeFileSync(clientCaFile, gone.certificate + authority.certificate);
  await settle(clock);
  const last = entries.at(-1);
  assert.is(last?.kind === "certificate.loaded" && last.name, "kube client CA");
});

test("a pair that a backend rejects waits, and is tried again; the first pair is not subject to rejection", async () => {
  let objection: Failure | undefined = new Failure("bad-file", "proxy", "backend a does not take it");
  put(serving);
  const { outcome, entries, clock } = await loaded({ prove: async () => objection });
  put(newer);
  await settle(clock);
  assert.equal(refusals(entries), ["backend a does not take it"]);
  assert.is(await servedBy(outcome), "watchkeeper");
  objection = undefined;
  clock.advance(certificateRetryMs);
  await settle(clock);
  assert.is(await servedBy(outcome), "newer");
});

test("a certificate that only its date keeps out is taken when the date has come", async () => {
  const nowMs = wallClock.wall();
  put(serving);
  const { outcome, clock } = await loaded();
  put(authority.issue({ name: "tomorrow", hosts: ["localhost"], notBefore: nowMs + clockSkewMs + 60_000 }));
  await settle(clock);
  assert.is(await servedBy(outcome), "watchkeeper");
  clock.advance(61_000);
  await settle(clock);
  clock.advance(certificateRetryMs);
  await settle(clock);
  assert.is(await servedBy(outcome), "tomorrow");
});

test("reload returns its result, and files with the same content change nothing", async () => {
  put(serving);
  const { outcome, entries } = await loaded();
  const context = outcome.current?.context;
  assert.is(await outcome.reload(), undefined);
  assert.is(outcome.current?.context, context);
  put({ ...serving, key: "" });
  const answers = await Promise.all([outcome.reload(), outcome.reload()]);
  assert.ok(answers.every((answer) => answer instanceof Failure));
  assert.is(entries.length, 2);
});

test("after stop nothing is loaded any more", async () => {
  put(serving);
  const { outcome, clock } = await loaded();
  outcome.stop();
  put(newer);
  await settle(clock);
  assert.is(await servedBy(outcome), "watchkeeper");
});

test("a CA file gives its certificates, EC and RSA, without anything else in it", async () => {
  const other = await createAuthority({ name: "rsa", keyType: "rsa", clock: wallClock });
  const file = join(directory, "ca.crt");
  writeFileSync(file, `# two\n${authority.certificate}${serving.key}${other.certificate}`);
  assert.is(loadCa(file), authority.certificate + other.certificate);
});

test("a CA file that is missing, empty, cut or garbage is a Failure", () => {
  const file = join(directory, "ca.crt");
  const problems = ["", "garbage", authority.certificate.slice(0, 300)].map((text) => {
    writeFileSync(file, text);
    const outcome = loadCa(file);
    return outcome instanceof Failure ? outcome.message.replace(/^.*": /, "") : outcome;
  });
  assert.equal(problems, [
    "no certificate among its 0 characters",
    "no certificate among its 7 characters",
    "the file ends inside a CERTIFICATE",
  ]);
  assert.instance(loadCa(join(directory, "missing")), Failure);
});

/**
 * Starts a server that wraps each accepted socket in a TLS socket and requests a client certificate, as the listener
 * does.
 */
async function serverWithOurOptions(pair: Pair): Promise<net.Server> {
  const secureContext = tls.createSecureContext({
    ...serverTlsOptions(),
    cert: pair.certificate,
    key: pair.key,
  });
  const server = net.createServer((socket) => {
    const secure = new tls.TLSSocket(socket, {
      isServer: true,
      secureContext,
      requestCert: true,
      rejectUnauthorized: false,
    });
    secure.on("error", () => secure.destroy());
    secure.on("secure", () => secure.write("hello"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => server.close());
  return server;
}

/** Returns the negotiated cipher, or undefined if the two sides have none in common. */
async function agreed(server: net.Server, options: tls.ConnectionOptions): Promise<string | undefined> {
  const client = connectTo(server, options);
  const outcome = new Promise<string | undefined>((resolve) => {
    client.once("secureConnect", () => resolve(client.getCipher().name));
    client.once("close", () => resolve(undefined));
  });
  const cipher = await within(20_000, "the handshake", outcome);
  client.destroy();
  return cipher;
}

test("TLS 1.0 and 1.1, RSA key exchange and CBC are refused (A45)", async () => {
  const server = await serverWithOurOptions(rsa);
  const lax = { ciphers: "ALL:@SECLEVEL=0", minVersion: "TLSv1" } as const;
  assert.is(await agreed(server, { ...lax, maxVersion: "TLSv1.1" }), undefined);
  assert.is(await agreed(server, { ciphers: "AES128-GCM-SHA256", maxVersion: "TLSv1.2" }), undefined);
  assert.is(await agreed(server, { ciphers: "ECDHE-RSA-AES128-SHA256", maxVersion: "TLSv1.2" }), undefined);
  assert.is(await agreed(server, { maxVersion: "TLSv1.2" }), "ECDHE-RSA-AES128-GCM-SHA256");
  assert.is(await agreed(server, {}), "TLS_AES_128_GCM_SHA256");
});

test("a client that renegotiates is refused (A46)", async () => {
  const client = connectTo(await serverWithOurOptions(serving), { maxVersion: "TLSv1.2" });
  await within(20_000, "hello", new Promise((resolve) => client.once("data", resolve)));
  const refused = new Promise<boolean>((resolve) => {
    client.renegotiate({ rejectUnauthorized: true }, (error) => resolve(error !== null));
    client.once("close", () => resolve(true));
  });
  assert.ok(await within(20_000, "the refusal", refused));
  client.destroy();
});

test("a session is resumed even where a client certificate is asked for", async () => {
  const server = await serverWithOurOptions(serving);
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const first = connectTo(server, { maxVersion });
    const session = await within(
      2000,
      "a ticket",
      new Promise<Buffer>((resolve) => first.once("session", resolve)),
    );
    first.destroy();
    const second = connectTo(server, { maxVersion, session });
    await within(20_000, "hello", new Promise((resolve) => second.once("data", resolve)));
    assert.ok(second.isSessionReused(), maxVersion);
    second.destroy();
  }
});

test.run();
