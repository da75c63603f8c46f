import { request } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { secureServer } from "../../../../src/ops/admin/server/secure-server.ts";
import { serverTlsOptions } from "../../../../src/proxy/tls/server-context.ts";
import { checkPair, type ServingPair } from "../../../../src/proxy/tls/serving-pair.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/secure-server");

async function pairOf(host: string): Promise<ServingPair> {
  const { authority } = await testPki();
  const { certificate, key } = authority.issue({ name: host, hosts: [host, "localhost"] });
  const pair = checkPair(certificate, key, wallClock.wall());
  if (pair instanceof Failure) throw new Error(pair.message);
  return pair;
}

/** Returns the name in the certificate that a client receives, or the reason why it receives none. */
async function shown(port: number): Promise<string> {
  const { authority } = await testPki();
  const { promise, resolve } = Promise.withResolvers<string>();
  const options = { port, host: "localhost", ca: authority.certificate, agent: false, maxCachedSessions: 0 };
  const sent = request({ ...options, family: 4 }, (response) => {
    const socket = response.socket as TLSSocket;
    resolve(
      `${response.statusCode} ${String(socket.getPeerCertificate().subject.CN)} ${socket.getProtocol()}`,
    );
    response.resume();
  });
  sent.on("error", (error) => resolve(error.message)).end();
  return within(20_000, "an answer", promise);
}

test("a connection is shown the certificate that is good when it comes, and none while there is none", async () => {
  const certificate: { current: { readonly pair: ServingPair } | undefined } = { current: undefined };
  const parts = { certificate, options: serverTlsOptions() };
  const server = secureServer({}, parts, (_request, response) => response.end());
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  assert.match(await shown(port), /socket|reset|disconnected/i);
  certificate.current = { pair: await pairOf("one.example") };
  assert.is(await shown(port), "200 one.example TLSv1.3");
  certificate.current = { pair: await pairOf("other.example") };
  assert.is(await shown(port), "200 other.example TLSv1.3");
  server.closeAllConnections();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
});

test.run();
