/**
 * Tests several hosts at one address. Each has its own certificate and clients, and a problem of one does not affect
 * the others.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import http2 from "node:http2";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Journal } from "../../../src/events/journal.ts";
import type { ListenerConfig } from "../../../src/ops/config/config.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { Hosts } from "../../../src/proxy/tls/sni-hosts.ts";
import {
  askH1,
  askH2,
  frontProxyPki,
  type JudgingBackend,
  shake,
  startJudge,
  tlsOptions,
} from "../../support/front-proxy.ts";
import { testPki } from "../../support/pki.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/sni-hosts");

const pki = await frontProxyPki();
const { authority } = await testPki();
const others = await createAuthority({ name: "others", clock: wallClock });
const blue = authority.issue({ name: "blue", hosts: ["blue.test", "a.blue.test"] });
const green = authority.issue({ name: "green", hosts: ["green.test"] });
const alice = pki.clients.issue({ name: "alice", usage: "client" });
const bob = others.issue({ name: "bob", usage: "client" });
const files = {
  "clients.crt": pki.clients.certificate,
  "others.crt": others.certificate,
  "front-proxy.crt": pki.pair.certificate,
  "front-proxy.key": pki.pair.key,
  "blue.crt": blue.certificate,
  "blue.key": blue.key,
  "green.crt": "-----BEGIN CERTIFICATE-----\nnil\n-----END CERTIFICATE-----\n",
  "green.key": green.key,
};

let judge: JudgingBackend;
let proxy: TestProxy;

test.before(async () => {
  judge = await startJudge("judge", pki);
  const host = (names: string, pair: string, more: string): string =>
    `{serverNames: [${names}], tls: {certFile: ${pair}.crt, keyFile: ${pair}.key, reloadInterval: 100ms${more}`;
  proxy = await startProxy({
    backends: 0,
    targets: [judge],
    files,
    listenerTls: "clientCAFile: clients.crt, reloadInterval: 100ms",
    listener: `identity: {clientCerts: FrontProxy}, hosts: [
      ${host('blue.test, "*.blue.test"', "blue", ", clientCAFile: others.crt}, identity: {clientCerts: FrontProxy}}")},
      ${host("green.test", "green", "}}")}]`,
    upstreamTls: "frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key}",
  });
});
const undo: (() => Promise<void>)[] = [];
test.after(async () => {
  for (const step of undo) await step();
  await proxy.stop();
  judge.stop();
});

for (const [version, ask] of [
  ["h2", askH2],
  ["http/1.1", askH1],
] as const) {
  const asks = (asking: Parameters<typeof ask>[1]): Promise<string> =>
    within(20_000, "an answer", ask(proxy, asking));
  const atBlue = { servername: "blue.test", authority: "blue.test:6443" };

  test(`${version}: a client's identity depends on the host that was asked for`, async () => {
    assert.is(await asks({ pair: alice }), "200 front-proxy alice ");
    assert.is(await asks({ ...atBlue, pair: bob }), "200 front-proxy bob ");
    assert.match(await asks({ pair: bob }), /^401 /);
    assert.match(await asks({ ...atBlue, pair: alice }), /^401 /);
    assert.is(
      await asks({ servername: "a.blue.test", authority: "A.BLUE.test", pair: bob }),
      "200 front-proxy bob ",
    );
  });

  test(`${version}: another host's name is asked for in vain (421); a name that no host has is legal (A42)`, async () => {
    assert.match(await asks({ pair: alice, authority: "blue.test" }), /^421 /);
    assert.match(await asks({ pair: alice, authority: "X.Blue.Test.:443" }), /^421 /);
    assert.match(await asks({ authority: "blue.test", headers: { authorization: "Bearer t" } }), /^421 /);
    assert.is(await asks({ ...atBlue, pair: bob, authority: "10.0.0.1:6443" }), "200 front-proxy bob ");
    assert.is(await asks({ ...atBlue, pair: bob, authority: "kubernetes" }), "200 front-proxy bob ");
  });
}

test("A48: capitals, dots and no name at all lead past no client CA", async () => {
  const lax = { checkServerIdentity: () => undefined };
  const at = async (servername: string, pair = alice): Promise<string> => {
    const socket = await shake({ ...tlsOptions(proxy, pair), ...lax, servername, ALPNProtocols: ["h2"] });
    const session = http2.connect(proxy.url, { createConnection: () => socket });
    const stream = session.request({ ":path": "/api" });
    const [head] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
    session.destroy();
    return String(head[":status"]);
  };
  for (const servername of ["blue.test", "BLUE.TEST", "Blue.test", "x.blue.test"])
    assert.is(await at(servername), "401", servername);
  for (const servername of ["", "x.y.blue.test", "blue.test.example", "localhost"])
    assert.is(await at(servername), "200", servername);
});

test("A47: a ticket of one host is good for nothing at another, or at its own", async () => {
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const tickets: Buffer[] = [];
    for (const servername of ["localhost", "blue.test"]) {
      const socket = await shake({
        ...tlsOptions(proxy, alice),
        servername,
        maxVersion,
        ALPNProtocols: ["h2"],
      });
      socket.on("session", (ticket: Buffer) => tickets.push(ticket));
      const session = http2.connect(proxy.url, { createConnection: () => socket });
      const stream = session.request({ ":path": "/api" });
      stream.resume();
      await once(stream, "end");
      const last = socket.getSession();
      if (last !== undefined) tickets.push(last);
      session.destroy();
    }
    for (const session of tickets) {
      for (const servername of ["localhost", "blue.test"]) {
        const again = await shake({ ...tlsOptions(proxy, undefined), servername, maxVersion, session });
        assert.is(again.isSessionReused(), false);
        again.destroy();
      }
    }
  }
});

test("A47: nor where the listener itself takes no certificates", async () => {
  const mixed = await startProxy({
    backends: 0,
    targets: [judge],
    files,
    listener: `hosts: [{serverNames: [blue.test], tls: {certFile: blue.crt, keyFile: blue.key, clientCAFile: clients.crt},
      identity: {clientCerts: FrontProxy}}]`,
    upstreamTls: "frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key}",
  });
  undo.push(() => mixed.stop());
  const servername = "blue.test";
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const socket = await shake({
      ...tlsOptions(mixed, alice),
      servername,
      maxVersion,
      ALPNProtocols: ["h2"],
    });
    const tickets: Buffer[] = [];
    socket.on("session", (ticket: Buffer) => tickets.push(ticket));
    const session = http2.connect(mixed.url, { createConnection: () => socket });
    const stream = session.request({ ":path": "/api", ":authority": servername });
    stream.resume();
    await once(stream, "end");
    const last = socket.getSession();
    if (last !== undefined) tickets.push(last);
    session.destroy();
    for (const ticket of tickets) {
      const again = await shake({ ...tlsOptions(mixed, undefined), servername, maxVersion, session: ticket });
      assert.is(again.isSessionReused(), false);
      again.destroy();
    }
  }
});

test("a session is resumed at no host of several, whose names it would not tell: its client is that host's each time", async () => {
  const named = await startProxy({
    backends: 1,
    files,
    listener: "hosts: [{serverNames: [blue.test], tls: {certFile: blue.crt, keyFile: blue.key}}]",
  });
  undo.push(() => named.stop());
  const servername = "blue.test";
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const tickets: Buffer[] = [];
    for (let round = 0; round < 3; round += 1) {
      const session = tickets.at(-1);
      const socket = await shake({
        port: named.port,
        ca: authority.certificate,
        servername,
        maxVersion,
        session,
      });
      socket.on("session", (ticket: Buffer) => tickets.push(ticket));
      assert.is(socket.isSessionReused(), false, maxVersion);
      socket.write(`GET /api HTTP/1.1\r\nHost: ${servername}\r\n\r\n`);
      const [answer] = (await within(5000, "the answer", once(socket, "data"))) as [Buffer];
      assert.match(answer.toString(), /^HTTP\/1.1 200 /, `round ${round}`);
      const last = socket.getSession();
      if (last !== undefined) tickets.push(last);
      socket.destroy();
    }
  }
});

test("A50: a bad certificate costs its own host only, is named, and serves once it is mended", async () => {
  const refused = await shake({ ...tlsOptions(proxy, undefined), servername: "green.test" }).catch(String);
  assert.type(refused, "string");
  const entry = proxy.entries.find(({ kind }) => kind === "certificate.refused");
  assert.match(JSON.stringify(entry), /kube\/green\.test.*green\.crt/);
  assert.is(await askH2(proxy, { pair: alice }), "200 front-proxy alice ");
  writeFileSync(join(proxy.directory, "green.crt"), green.certificate);
  const isServed = async (): Promise<boolean> => {
    const socket = await shake({ ...tlsOptions(proxy, undefined), servername: "green.test" }).catch(
      () => undefined,
    );
    socket?.destroy();
    return socket !== undefined;
  };
  const mended = async (): Promise<void> => {
    while (!(await isServed())) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  await within(10_000, "the mended host", mended());
  assert.match(
    await askH2(proxy, { pair: alice, servername: "green.test", authority: "green.test" }),
    /^403 /,
  );
});

test("A50: whatever a running host's files become, it serves on with its last good ones, and is counted", async () => {
  const rejected = async (): Promise<number> => {
    const answer = await fetch(`http://${proxy.running.adminAddress}/metrics`).then((reply) => reply.text());
    const row = /certificate_reloads_total\{name="kube\/blue.test",result="rejected"\} (\d+)/.exec(answer);
    return Number(row?.[1] ?? 0);
  };
  const garbage = Buffer.alloc(16_384, 7).toString();
  const bad = ["", "nil", blue.certificate.slice(0, 200), green.certificate, garbage];
  for (const [at, content] of bad.entries()) {
    writeFileSync(join(proxy.directory, "blue.crt"), content);
    const noticed = async (): Promise<void> => {
      while ((await rejected()) <= at) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    await within(10_000, "the refusal", noticed());
    const asking = { pair: bob, servername: "blue.test", authority: "blue.test" };
    assert.match(await askH2(proxy, asking), /^200 .*bob/);
  }
  writeFileSync(join(proxy.directory, "blue.crt"), blue.certificate);
});

test("A50: a good pair for other names does not take the place of one that has the host's", async () => {
  const isTold = (): boolean =>
    proxy.entries.some(
      (entry) =>
        entry.kind === "certificate.refused" &&
        entry.problem.endsWith('the certificate of "CN=green" has none of the names blue.test, *.blue.test'),
    );
  writeFileSync(join(proxy.directory, "blue.crt"), green.certificate);
  writeFileSync(join(proxy.directory, "blue.key"), green.key);
  const told = async (): Promise<void> => {
    while (!isTold()) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  await within(10_000, "the refusal", told());
  const asking = { pair: bob, servername: "blue.test", authority: "blue.test" };
  assert.match(await askH2(proxy, asking), /^200 .*bob/);
  writeFileSync(join(proxy.directory, "blue.crt"), blue.certificate);
  writeFileSync(join(proxy.directory, "blue.key"), blue.key);
});

test("another client CA sends away the clients that the last one identified, when their answers are over", async () => {
  const open = async (pair: typeof bob | undefined): Promise<http2.ClientHttp2Session> => {
    const servername = "blue.test";
    const socket = await shake({ ...tlsOptions(proxy, pair), servername, ALPNProtocols: ["h2"] });
    return http2.connect(proxy.url, { createConnection: () => socket });
  };
  const [session, unnamed] = await Promise.all([open(bob), open(undefined)]);
  const away = once(session, "goaway");
  writeFileSync(join(proxy.directory, "others.crt"), pki.clients.certificate);
  await within(10_000, "GOAWAY", away);
  assert.is(unnamed.closed, false);
  const asking = { servername: "blue.test", authority: "blue.test" };
  assert.is(await askH2(proxy, { ...asking, pair: alice }), "200 front-proxy alice ");
  assert.match(await askH2(proxy, { ...asking, pair: bob }), /^401 /);
  session.destroy();
  unnamed.destroy();
});

test("a session that a client may reuse by its certificate is not another cluster's: 421 for the default host's name", async () => {
  const shared = authority.issue({
    name: "shared",
    hosts: ["*.corp.test", "kubernetes.default.svc", "localhost", "127.0.0.1"],
  });
  const own = authority.issue({ name: "own", hosts: ["own.corp.test"] });
  for (const [name, pair] of Object.entries({ shared, own })) {
    writeFileSync(join(proxy.directory, `${name}.crt`), pair.certificate);
    writeFileSync(join(proxy.directory, `${name}.key`), pair.key);
  }
  const tlsOf = (name: string) =>
    ({
      certFile: join(proxy.directory, `${name}.crt`),
      keyFile: join(proxy.directory, `${name}.key`),
      reloadIntervalMs: 10_000,
      clientCaFile: undefined,
      identity: { clientCerts: "Reject" },
    }) as const;
  const host = (name: string, cluster: string, pair = "shared") => ({
    serverNames: [name],
    cluster,
    tls: tlsOf(pair),
  });
  const config: ListenerConfig = {
    name: "kube",
    address: { host: "127.0.0.1", port: 0 },
    mode: "HTTP",
    cluster: "eu",
    tls: tlsOf("shared"),
    routes: [],
    hosts: [host("us.corp.test", "us"), host("twin.corp.test", "eu"), host("own.corp.test", "us", "own")],
    trustedForwarderCIDRs: [],
    proxyProtocol: { mode: "Disabled", trustedCIDRs: [] },
    maxConnectionsPerSource: 9,
    reusePort: false,
  };
  const hosts = await Hosts.load(config, {
    clock: wallClock,
    journal: new Journal(wallClock),
    onOtherCa() {},
  });
  assert.instance(hosts, Hosts);
  if (!(hosts instanceof Hosts)) return;
  undo.push(async () => hosts.stop());
  /**
   * Requests these authorities one after the other on one TLS session that was opened with this server name. Returns
   * those that are refused.
   */
  const refused = (servername: string, ...authorities: readonly string[]): readonly string[] => {
    const mayAsk = hosts.judge(servername === "" ? hosts.default : hosts.find(servername));
    return authorities.filter((asked) => !mayAsk(asked));
  };
  const us = "us.corp.test:6443";
  // Both hosts have a certificate for *.corp.test. So a client with a session to one host may reuse that session for
  // the other (RFC 9113 §9.1.1).
  assert.equal(refused("us.corp.test", us, "eu.corp.test", "EU.corp.test.:6443", us), [
    "eu.corp.test",
    "EU.corp.test.:6443",
  ]);
  // `kubectl --tls-server-name us.corp.test` with eu's name in the server URL: all its requests have eu's name as their
  // authority, and none has that of `us`.
  assert.equal(refused("us.corp.test", "eu.corp.test", "eu.corp.test:6443"), []);
  // Authorities that are always permitted: addresses, a cluster's internal names, and names that the certificate does
  // not contain. A client without SNI may send any.
  const ofEach = [
    "127.0.0.1:6443",
    "[::1]:6443",
    "10.0.0.1",
    "localhost:8443",
    "kubernetes.default.svc",
    "x.test",
  ];
  assert.equal(refused("us.corp.test", us, ...ofEach), []);
  assert.equal(refused("own.corp.test", "own.corp.test", "eu.corp.test"), []);
  assert.equal(refused("twin.corp.test", "twin.corp.test", "eu.corp.test"), []);
  for (const servername of ["", "eu.corp.test"])
    assert.equal(
      refused(servername, "eu.corp.test", "us.corp.test", "twin.corp.test", "y.corp.test", ...ofEach),
      ["us.corp.test"],
    );
});

test("when no host can be served there is no listener, and the first one's problem is the reason", async () => {
  const absent = {
    certFile: join(proxy.directory, "absent.crt"),
    keyFile: join(proxy.directory, "absent.key"),
    reloadIntervalMs: 10_000,
    clientCaFile: undefined,
    identity: { clientCerts: "Reject" },
  } as const;
  const config: ListenerConfig = {
    name: "kube",
    address: { host: "127.0.0.1", port: 0 },
    mode: "HTTP",
    cluster: "",
    tls: absent,
    routes: [],
    hosts: [{ serverNames: ["x.test"], cluster: "", tls: absent }],
    trustedForwarderCIDRs: [],
    proxyProtocol: { mode: "Disabled", trustedCIDRs: [] },
    maxConnectionsPerSource: 9,
    reusePort: false,
  };
  const parts = { clock: wallClock, journal: new Journal(wallClock), onOtherCa() {} };
  const outcome = await Hosts.load(config, parts);
  assert.match(outcome?.failure?.message ?? "", "absent.crt");
  outcome?.stop();
  assert.is(await Hosts.load({ ...config, tls: undefined }, parts), undefined);
});

test.run();
