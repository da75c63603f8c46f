import { duplexPair } from "node:stream";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { type HandshakeResult, shakeHands } from "../../../src/proxy/tls/handshake.ts";
import { serverContext } from "../../../src/proxy/tls/server-context.ts";
import { checkPair } from "../../../src/proxy/tls/serving-pair.ts";
import type { Host, Hosts } from "../../../src/proxy/tls/sni-hosts.ts";
import { rootsIn } from "../../../src/x509/verify.ts";
import { usualNames } from "../../support/certificate.ts";
import { type ClientRow, clientBundle, clientRows } from "../../support/client-certificates.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/client-certificates");

const { serving } = await testPki();
const clientCas = rootsIn(clientBundle);
const pair = checkPair(serving.certificate, serving.key, wallClock.wall());
if (pair instanceof Failure) throw new Error(pair.message);
const context = serverContext(pair, { clientCas, wholeOnly: true });
if (context instanceof Failure) throw new Error(context.message);

const host: Host = {
  name: "all",
  names: [],
  cluster: "",
  policy: { clientCerts: "FrontProxy", names: usualNames },
  realm: "",
  context: () => context,
  clientCas: () => clientCas,
};
const hosts = { default: host, hasSeveral: false, find: () => host } satisfies Partial<Hosts>;

/** Returns the identity that a listener gives a client with this certificate; "refused" also if there is no handshake. */
async function identityOf({ chain, key }: ClientRow, maxVersion: tls.SecureVersion): Promise<string> {
  const [near, far] = duplexPair();
  // At its usual level, OpenSSL's client refuses some of its own certificates.
  const own = { cert: chain, key, ciphers: "DEFAULT@SECLEVEL=0" };
  const outcome = new Promise<HandshakeResult | Error>((resolve) => {
    shakeHands(near as never, hosts as never, wallClock, resolve);
    try {
      const client = tls.connect({ socket: far, rejectUnauthorized: false, maxVersion, ...own });
      client.on("error", resolve);
    } catch (reason) {
      resolve(new Error("OpenSSL cannot use the certificate", { cause: reason }));
    }
  });
  const result = await within(20_000, "a handshake", outcome);
  far.destroy();
  if (result instanceof Error) return "refused";
  result.socket.on("error", () => {});
  result.socket.destroy();
  const { identity } = result;
  if (identity.kind !== "asserted") return identity.kind;
  return identity.groups.length === 0 ? identity.user : `${identity.user}:${identity.groups.join(",")}`;
}

for (const row of clientRows)
  test(
    `a client certificate with ${row.title} is "${row.proxy ?? row.apiserver}"`.slice(0, 120),
    async () => {
      for (const version of ["TLSv1.2", "TLSv1.3"] as const)
        assert.is(await identityOf(row, version), row.proxy ?? row.apiserver, version);
    },
  );

test("a client that sends its handshake byte by byte is identified", async () => {
  const [near, end] = duplexPair();
  const [start, far] = duplexPair();
  start.on("data", (chunk: Buffer) => {
    for (const byte of chunk) end.write(Buffer.of(byte));
  });
  end.on("data", (chunk: Buffer) => start.write(chunk));
  const outcome = new Promise<HandshakeResult | Error>((resolve) => {
    shakeHands(near as never, hosts as never, wallClock, resolve);
  });
  const [row] = clientRows;
  const client = tls.connect({ socket: far, rejectUnauthorized: false, cert: row?.chain, key: row?.key });
  client.on("error", () => {});
  const result = await within(20_000, "a handshake", outcome);
  assert.is(result instanceof Error ? result.message : result.identity.kind, "asserted");
  client.destroy();
});

test.run();
