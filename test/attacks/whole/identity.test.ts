/**
 * The identity of a client if the proxy maps certificates to users: over HTTP/2, HTTP/1.1 and Upgrade, beside a
 * bystander with a token.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { createAuthority, type Pair } from "../../../src/ops/pki/pki.ts";
import { pause, sceneOf } from "../../support/attack.ts";
import { frontProxyPki, shake, tlsOptions } from "../../support/front-proxy.ts";
import { type Fields, headers } from "../../support/h2-frames.ts";
import { testPki } from "../../support/pki.ts";
import { seeded } from "../../support/random.ts";
import { RawPeer } from "../../support/raw.ts";
import { claim, claimingRequest } from "../../support/spoof.ts";
import {
  type AskedFor,
  askBy,
  rawH2For,
  socketFor,
  type Told,
  type Way,
  ways,
} from "../../support/three-ways.ts";

const test = suite("attacks/whole/identity");

const pki = await frontProxyPki();
const { authority } = await testPki();
const others = await createAuthority({ name: "others", clock: wallClock });
const blue = authority.issue({ name: "blue", hosts: ["blue.test"] });
const alice = pki.clients.issue({ name: "alice", groups: ["devs", "a, b"], usage: "client" });
const bob = others.issue({ name: "bob", usage: "client" });
const impersonator = pki.clients.issue({ name: "impersonator", usage: "client" });

const scene = sceneOf(test, () => ({
  files: {
    "clients.crt": pki.clients.certificate,
    "others.crt": others.certificate,
    "front-proxy.crt": pki.pair.certificate,
    "front-proxy.key": pki.pair.key,
    "impersonator.crt": impersonator.certificate,
    "impersonator.key": impersonator.key,
    "blue.crt": blue.certificate,
    "blue.key": blue.key,
  },
  listenerTls: "clientCAFile: clients.crt, reloadInterval: 100ms",
  listener: `identity: {clientCerts: FrontProxy}, hosts: [{serverNames: [blue.test], tls: {certFile: blue.crt,
    keyFile: blue.key, clientCAFile: others.crt}, identity: {clientCerts: FrontProxy}}]`,
  listeners: `  - {name: speaks, address: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: clients.crt}, identity: {clientCerts: Impersonate}}
  - {name: plain, address: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key}}`,
  upstreamTls: `frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key, reloadInterval: 100ms, usernameHeaders: [X-Remote-User, X-My-User]},
    impersonator: {certFile: impersonator.crt, keyFile: impersonator.key}`,
}));

/**
 * Returns the port of a listener, and the CAs to trust. The default certificate is from the CA of the proxy's process,
 * that of blue.test from the CA of this process.
 */
function place(listener = "kube"): { readonly port: number; readonly ca: string } {
  const { ports, ca } = scene.proxy.place;
  return { port: ports[listener] ?? 0, ca: ca + authority.certificate };
}

type Asking = Omit<AskedFor, "port" | "ca"> & { readonly listener?: string };

function ask(way: Way, { listener, ...asked }: Asking): Promise<Told> {
  return askBy(way, { ...place(listener), ...asked });
}

/** Returns all fields that the target received and could take for an identity, for example "x-remote-user: alice". */
function wordsIn({ shown }: Told): readonly string[] {
  const fields = shown?.fields ?? [];
  return fields.flatMap((name, at) =>
    at % 2 === 0 && /^(x[^a-z](remote|my)[^a-z]|impersonate|authorization)/i.test(name)
      ? [`${name.toLowerCase()}: ${fields[at + 1]}`]
      : [],
  );
}

/** Asserts that the target received alice's identity from the proxy, and no other. */
function isAlice(told: Told, what: string): void {
  assert.is(told.shown?.certificate, "front-proxy-client", what);
  const words = wordsIn(told);
  assert.equal(
    words.slice(0, 3),
    ["x-remote-user: alice", "x-remote-group: devs", "x-remote-group: a, b"],
    what,
  );
  assert.is(words.length, 4, `${what}: ${words.join()}`);
}

const claims: Fields = [
  ["X-Remote-User", "admin"],
  ["X_Remote_User", "admin"],
  ["x-REMOTE_user", "admin"],
  ["X-Remote-Uid", "0"],
  ["X-Remote-Group", "system:masters"],
  ["X-Remote_Group", "system:masters"],
  ["X-Remote-Extra-Scopes", "all"],
  ["X-Remote-Extra-authentication.kubernetes.io%2Fcredential-id", "x"],
  ["X-Remote-Anything", "x"],
  ["X-My-User", "admin"],
  ["X_My-User", "admin"],
  ["X.Remote.User", "admin"],
  ["X~Remote+Group", "system:masters"],
  ["Authorization", "Bearer admin"],
];

for (const way of ["h2", "h1", "Upgrade"] as const) {
  test(`A39: over ${way} X-Remote-* in any spelling is dropped, and the proxy's own come behind nothing of the client's`, async () => {
    for (const one of claims) isAlice(await ask(way, { pair: alice, fields: [one] }), String(one));
    isAlice(await ask(way, { pair: alice, fields: [...claims.slice(0, -1), ...claims] }), "all of them");
  });

  test(`A39: over ${way} they are dropped of every client there: with a token, anonymous, with a certificate that does not hold`, async () => {
    const token = ["authorization", "Bearer t"] as const;
    const own = claims.slice(0, -1);
    for (const { pair, fields, said } of [
      { pair: undefined, fields: own, said: [] },
      { pair: undefined, fields: [...own, token, ...own], said: ["authorization: Bearer t"] },
      { pair: bob, fields: [...own, token], said: ["authorization: Bearer t"] },
    ])
      for (const listener of ["kube", "speaks"]) {
        const told = await ask(way, { listener, pair, fields });
        assert.equal([told.shown?.certificate, wordsIn(told)], ["", said], listener);
      }
  });

  test(`the honest twin of A39: over ${way} names that look alike pass, and all of them where certificates identify no client`, async () => {
    const alike: Fields = [
      ["x-remote", "a"],
      ["x-remoteuser", "b"],
      ["my-x-remote-user", "c"],
    ];
    const { shown } = await ask(way, { pair: alice, fields: alike });
    for (const [name, value] of alike) assert.ok(shown?.fields.join(" ").includes(`${name} ${value}`), name);
    const fields: Fields = [
      ["authorization", "Bearer t"],
      ["x-remote-user", "admin"],
    ];
    const told = await ask(way, { listener: "plain", fields });
    assert.equal(
      [told.shown?.certificate, wordsIn(told)],
      ["", ["authorization: Bearer t", "x-remote-user: admin"]],
    );
  });

  test(`A41: over ${way} no client impersonates a third user where the proxy impersonates`, async () => {
    for (const name of [
      "Impersonate-User",
      "impersonate_user",
      "Impersonate-Group",
      "Impersonate-Uid",
      "Impersonate-Extra-x",
    ]) {
      const path = `/who/${name}`;
      const { status } = await ask(way, { listener: "speaks", pair: alice, path, fields: [[name, "admin"]] });
      assert.equal([status, scene.target.seen(path)], [403, 0], name);
    }
  });

  test(`the honest twin of A41: over ${way} a client without Impersonate-* is impersonated, elsewhere Impersonate-* passes unmerged`, async () => {
    const own = await ask(way, { listener: "speaks", pair: alice });
    const groups = ["impersonate-group: devs", "impersonate-group: a, b"];
    assert.equal(
      [own.shown?.certificate, wordsIn(own)],
      ["impersonator", ["impersonate-user: alice", ...groups]],
    );
    const fields: Fields = [
      ["impersonate-user", "bob"],
      ["impersonate-group", "a"],
      ["impersonate-group", "b, c"],
    ];
    const through = await ask(way, { pair: alice, fields });
    assert.equal(
      wordsIn(through).slice(0, 3),
      fields.map(([name, value]) => `${name}: ${value}`),
    );
  });

  test(`A42: over ${way} another host's name is refused, and its certificates identify no client here`, async () => {
    for (const [at, asked] of [
      { pair: alice, authority: "blue.test" },
      { pair: alice, authority: "BLUE.Test.:443" },
      { authority: "blue.test", fields: [["authorization", "Bearer t"]] as const },
    ].entries()) {
      const path = `/who/${way}-${at}`;
      const { status } = await ask(way, { ...asked, path });
      assert.equal([status, scene.target.seen(path)], [421, 0], path);
    }
    assert.is((await ask(way, { pair: bob })).status, 401);
    assert.is((await ask(way, { pair: alice, servername: "blue.test", authority: "blue.test" })).status, 401);
  });

  test(`the honest twin of A42: over ${way} each at its own host, and a name that no host has`, async () => {
    const blueTest = { pair: bob, servername: "blue.test" };
    for (const name of ["blue.test", "Blue.Test:6443", "10.0.0.1:6443", "kubernetes"]) {
      const told = await ask(way, { ...blueTest, authority: name });
      assert.is(wordsIn(told)[0], "x-remote-user: bob", name);
    }
    isAlice(await ask(way, { pair: alice, authority: "kubernetes.default" }), "kubernetes.default");
  });
}

test("A39: two hundred random claims over h1 are alice's, or are refused", async () => {
  const random = seeded(39);
  let answered = 0;
  for (let round = 0; round < 200; round += 1) {
    const peer = new RawPeer(await socketFor({ ...place(), pair: alice }, "http/1.1"));
    const octets = claimingRequest(claim(random), { path: "/who", host: "localhost", body: "{}" });
    peer.send(octets.replace("\r\n", "\r\nConnection: close\r\n"));
    const answer = await peer.ended();
    peer.socket.destroy();
    const status = Number(answer.slice(9, 12));
    if (status !== 200) assert.is(status, 400, octets);
    else {
      answered += 1;
      const text = answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
      isAlice({ status, text, shown: JSON.parse(text) as NonNullable<Told["shown"]> }, octets);
    }
  }
  assert.ok(answered > 50 && answered < 200, `${answered} were answered`);
});

/** Repeats the check every 50 ms until it is true. Throws after 200 tries. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return;
    await pause(50);
  }
  throw new Error(`Waited in vain for ${what}`);
}

/** Replaces the front-proxy certificate and its key, as a Secret volume does. */
function renew({ certificate, key }: Pair): void {
  const { directory } = scene.proxy.place;
  writeFileSync(join(directory, "front-proxy.key"), key);
  writeFileSync(join(directory, "front-proxy.crt"), certificate);
}

const certificateNow = async (): Promise<string | undefined> =>
  (await ask("h2", { pair: alice })).shown?.certificate;

test("A44: the proxy's own certificate ends while a watch and a tunnel live on its upstream connection: both go on, and no request gets a 401", async () => {
  const lifeMs = 5000;
  const began = Date.now();
  renew(pki.authority.issue({ name: "front-proxy-short", usage: "client", notAfter: began + lifeMs }));
  await until("the short one", async () => (await certificateNow()) === "front-proxy-short");
  const client = await rawH2For({ ...place(), pair: alice });
  client.send(headers(1).get("/api/v1/pods?watch=true"));
  await client.expect(/^DATA 1 /);
  const tunnel = new RawPeer(await socketFor({ ...place(), pair: alice }, "http/1.1"));
  tunnel.send("POST /exec HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
  await tunnel.expect("\r\n\r\n");
  renew(pki.authority.issue({ name: "front-proxy-next", usage: "client" }));
  await until("the next one", async () => (await certificateNow()) === "front-proxy-next");
  assert.ok(Date.now() - began < lifeMs, "before the old one has ended");
  await pause(began + lifeMs + 500 - Date.now());
  for (const way of ways)
    assert.is((await ask(way, { pair: alice })).shown?.certificate, "front-proxy-next", way);
  const { length } = client.heard;
  await client.until("more events", () => client.heard.length > length + 3);
  assert.is(client.count(/^(RST_STREAM|GOAWAY|.* END$)/), 0);
  tunnel.send("still there");
  await tunnel.expect("still there");
  client.destroy();
  tunnel.socket.destroy();
  renew(pki.pair);
  await until("the first one", async () => (await certificateNow()) === "front-proxy-client");
});

test("the honest twin of A44: a certificate that is replaced by rubbish is kept, and alice is served by it", async () => {
  const { directory } = scene.proxy.place;
  writeFileSync(
    join(directory, "front-proxy.crt"),
    "-----BEGIN CERTIFICATE-----\nnil\n-----END CERTIFICATE-----\n",
  );
  await pause(500);
  for (const way of ways) isAlice(await ask(way, { pair: alice }), way);
  renew(pki.pair);
});

/** Checks that a TLS session ticket is not accepted: the client that offers it counts as one without a certificate. */
async function hasNoCertificate(servername: string, options: tls.ConnectionOptions): Promise<void> {
  const socket = await shake({ ...place(), servername, ...options });
  assert.is(socket.isSessionReused(), false, `${options.maxVersion} ${servername}`);
  socket.write(`GET /who HTTP/1.1\r\nHost: ${servername}\r\n\r\n`);
  assert.match(await new RawPeer(socket).expect("}"), '"certificate":""');
  socket.destroy();
}

test("A47: no handshake is resumed, over TLS 1.2 or 1.3, at this host or another, so no client inherits a certificate", async () => {
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const)
    for (const [servername, pair] of [
      ["localhost", alice],
      ["blue.test", bob],
    ] as const) {
      const first = await shake({ ...tlsOptions(place(), pair), servername, maxVersion });
      const tickets: Buffer[] = [];
      first.on("session", (ticket: Buffer) => tickets.push(ticket));
      first.write(`GET /who HTTP/1.1\r\nHost: ${servername}\r\n\r\n`);
      await new RawPeer(first).expect("certificate");
      const last = first.getSession();
      if (last !== undefined) tickets.push(last);
      first.destroy();
      for (const session of tickets) {
        await hasNoCertificate("localhost", { maxVersion, session });
        await hasNoCertificate("blue.test", { maxVersion, session });
      }
    }
});

test("the honest twin of A47: a client that presents the certificate again is the same again, with or without a ticket", async () => {
  const first = await shake(tlsOptions(place(), alice));
  const session = first.getSession();
  first.destroy();
  const again = await shake({ ...tlsOptions(place(), alice), session });
  again.write("GET /who HTTP/1.1\r\nHost: localhost\r\n\r\n");
  assert.match(await new RawPeer(again).expect("}"), '"certificate":"front-proxy-client"');
  again.destroy();
});

test("after its CA was removed by a reload, a client has its old identity in no way, whatever session it offers", async () => {
  const { directory } = scene.proxy.place;
  const trust = (certificate: string): void => writeFileSync(join(directory, "clients.crt"), certificate);
  const whoNow = async (): Promise<string | undefined> =>
    (await ask("h1", { pair: alice })).shown?.certificate;
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const first = await shake({ ...tlsOptions(place(), alice), maxVersion });
    const sessions: (Buffer | undefined)[] = [];
    first.on("session", (session: Buffer) => sessions.push(session));
    first.write("GET /who HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert.match(await new RawPeer(first).expect("}"), '"certificate":"front-proxy-client"');
    sessions.push(first.getSession());
    first.destroy();
    trust(others.certificate);
    await until("the removal", async () => (await whoNow()) === undefined);
    for (const session of sessions) {
      const again = await shake({ ...tlsOptions(place(), alice), maxVersion, session });
      assert.is(again.isSessionReused(), false, maxVersion);
      again.write("GET /who HTTP/1.1\r\nHost: localhost\r\n\r\n");
      assert.match(await new RawPeer(again).expect("}"), /^HTTP\/1.1 401 /);
      again.destroy();
    }
    trust(pki.clients.certificate);
    await until("the first CA", async () => (await whoNow()) === "front-proxy-client");
  }
});

test.run();
