/** A client's identity, from the client's TLS connection to the user that the backend sees. */

import { once } from "node:events";
import http2 from "node:http2";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { certificateLeaveMs } from "../../src/upstream/identity/asserted-identity.ts";
import {
  type Asking,
  askH1,
  askH2,
  frontProxyPki,
  type JudgingBackend,
  shake,
  startJudge,
  tlsOptions,
} from "../support/front-proxy.ts";
import { testPki } from "../support/pki.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

const test = suite("flows/identity-through");

const pki = await frontProxyPki();
const alice = pki.clients.issue({ name: "alice", groups: ["devs", "a, b"], usage: "client" });
const files = {
  "clients.crt": pki.clients.certificate,
  "front-proxy.crt": pki.pair.certificate,
  "front-proxy.key": pki.pair.key,
};
let judge: JudgingBackend;
let proxy: TestProxy;

test.before(async () => {
  judge = await startJudge("judge", pki);
  proxy = await startProxy({
    backends: 0,
    targets: [judge],
    files,
    listenerTls: "clientCAFile: clients.crt",
    listener: "identity: {clientCerts: FrontProxy}",
    upstreamTls:
      "frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key, usernameHeaders: [X-Remote-User, X-My-User]}",
  });
});
test.after(async () => {
  await proxy.stop();
  judge.stop();
});

for (const [version, ask] of [
  ["h2", askH2],
  ["http/1.1", askH1],
] as const) {
  const asks = (asking: Asking): Promise<string> => within(20_000, "an answer", ask(proxy, asking));

  test(`${version}: a certificate is its user and groups, whatever else its holder says`, async () => {
    assert.is(await asks({ pair: alice }), "200 front-proxy alice devs|a, b");
    const headers = { "x-remote-user": "admin", "x-remote-group": ["system:masters"], x_remote_user: "root" };
    assert.is(await asks({ pair: alice, headers }), "200 front-proxy alice devs|a, b");
    const last = judge.seen.at(-1)?.headers ?? {};
    assert.is(last["x_remote_user"], undefined);
    assert.is(
      await asks({ pair: alice, headers: { authorization: "Bearer admin" } }),
      "200 front-proxy alice devs|a, b",
    );
    assert.is(judge.seen.at(-1)?.headers.authorization, undefined);
  });

  test(`${version}: a client without a certificate never shares a connection with the proxy's own`, async () => {
    const headers = { authorization: "Bearer t", "x-remote-user": "admin" };
    assert.is(await asks({ headers }), "200 bearer t");
    assert.is(await asks({ headers: { "x-remote-user": "admin" } }), "200 anonymous");
    assert.equal(
      judge.seen.slice(-2).map(({ shown }) => shown),
      ["", ""],
    );
  });

  test(`${version}: a certificate of an unknown CA is a 401, and a bearer beside it counts`, async () => {
    const { authority } = await testPki();
    const stranger = authority.issue({ name: "alice", groups: ["devs"], usage: "client" });
    assert.match(await asks({ pair: stranger }), /^401 .*"reason":"Unauthorized"/);
    assert.is(await asks({ pair: stranger, headers: { authorization: "Bearer t" } }), "200 bearer t");
    const server = pki.clients.issue({ name: "alice", usage: "server" });
    assert.match(await asks({ pair: server }), /^401 .*extended key usage/);
    const past = pki.clients.issue({ name: "alice", usage: "client", notAfter: Date.now() - 1000 });
    assert.match(await asks({ pair: past }), /^401 .*expired/);
  });
}

for (const [whose, pair, who] of [
  ["a certificate's holder's", alice, "front-proxy alice devs|a, b"],
  ["any other client's", undefined, "anonymous"],
] as const)
  test(`h2: no name that was configured passes in its trailers, ${whose}, and whatever else is said there does (A38)`, async () => {
    const socket = await shake({ ...tlsOptions(proxy, pair), ALPNProtocols: ["h2"] });
    const session = http2.connect(proxy.url, { createConnection: () => socket });
    const stream = session.request({ ":path": "/api", ":method": "POST" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-my-user": "root", "x-sum": "1" }));
    stream.end("{}");
    stream.resume();
    await within(5000, "the answer", once(stream, "end"));
    const last = judge.seen.at(-1) ?? { who: "", trailers: {} };
    assert.is(last.who, who);
    assert.equal({ ...last.trailers }, { "x-sum": "1" });
    session.destroy();
  });

test("A47: no handshake can be resumed, so no client inherits a certificate", async () => {
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const first = await shake({ ...tlsOptions(proxy, alice), ALPNProtocols: ["h2"], maxVersion });
    let ticket: Buffer | undefined;
    first.on("session", (session: Buffer) => {
      ticket = session;
    });
    const session = http2.connect(proxy.url, { createConnection: () => first });
    const stream = session.request({ ":path": "/api" });
    stream.resume();
    await once(stream, "end");
    ticket ??= first.getSession();
    session.destroy();
    const again = await shake({
      ...tlsOptions(proxy, undefined),
      ALPNProtocols: ["h2"],
      maxVersion,
      session: ticket,
    });
    assert.is(again.isSessionReused(), false);
    const other = http2.connect(proxy.url, { createConnection: () => again });
    const asked = other.request({ ":path": "/api" });
    const chunks: Buffer[] = [];
    for await (const chunk of asked) chunks.push(chunk as Buffer);
    assert.is(Buffer.concat(chunks).toString(), "anonymous");
    other.destroy();
  }
});

test("h2: behind a 401 for a certificate comes a GOAWAY, so that another one can be shown", async () => {
  const past = pki.clients.issue({ name: "alice", usage: "client", notAfter: Date.now() - 1000 });
  const socket = await shake({ ...tlsOptions(proxy, past), ALPNProtocols: ["h2"] });
  const session = http2.connect(proxy.url, { createConnection: () => socket });
  const sentAway = once(session, "goaway");
  const stream = session.request({ ":path": "/api" });
  const [head] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  assert.is(head[":status"], 401);
  stream.resume();
  await within(5000, "the GOAWAY", sentAway);
  session.destroy();
});

test("http/1.1: behind a 401 for a certificate the connection ends", async () => {
  const past = pki.clients.issue({ name: "alice", usage: "client", notAfter: Date.now() - 1000 });
  const socket = await shake(tlsOptions(proxy, past));
  const ended = once(socket, "end");
  socket.write("GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [answer] = (await within(5000, "the answer", once(socket, "data"))) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 401 /);
  socket.resume();
  await within(5000, "the end", ended);
  socket.destroy();
});

test("shortly before its certificate ends a client is sent away, and what it has open goes on", async () => {
  const lifeMs = certificateLeaveMs + 2500;
  const short = pki.clients.issue({ name: "alice", usage: "client", notAfter: Date.now() + lifeMs });
  const socket = await shake({ ...tlsOptions(proxy, short), ALPNProtocols: ["h2"] });
  const session = http2.connect(proxy.url, { createConnection: () => socket });
  const sentAway = once(session, "goaway");
  // The request body is incomplete, so the backend waits for the rest.
  const stream = session.request({ ":path": "/api", ":method": "POST" });
  // Without a response the test fails below, with a clear message.
  stream.on("error", () => {});
  stream.write("{");
  const was = Date.now();
  await within(lifeMs, "the GOAWAY", sentAway);
  assert.ok(Date.now() - was < lifeMs - 1000, "while the certificate holds");
  stream.end("}");
  const [head] = (await within(3000, "the answer", once(stream, "response"))) as [http2.IncomingHttpHeaders];
  assert.is(head[":status"], 200);
  session.destroy();
});

test.run();
