import net from "node:net";
import { duplexPair } from "node:stream";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { limits } from "../../../src/base/limits.ts";
import { type HandshakeResult, shakeHands } from "../../../src/proxy/tls/handshake.ts";
import { serverContext } from "../../../src/proxy/tls/server-context.ts";
import { checkPair } from "../../../src/proxy/tls/serving-pair.ts";
import type { Host, Hosts } from "../../../src/proxy/tls/sni-hosts.ts";
import { manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";
import { openPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/handshake");

const { authority, serving } = await testPki();
const pair = checkPair(serving.certificate, serving.key, wallClock.wall());
const plain = { clientCas: [], wholeOnly: false };
const context = "code" in pair ? undefined : serverContext(pair, plain);

/** Returns two hosts, of which the second has no valid certificate. With `isAlone`, returns only the first. */
function hosts(isAlone = false, clientCas: Host["clientCas"] = () => []): Hosts {
  const host = (name: string): Host => ({
    name,
    names: [],
    cluster: "",
    policy: { clientCerts: "Reject" },
    realm: "",
    clientCas,
    context: () => (name === "good" && context !== undefined && !("code" in context) ? context : undefined),
  });
  const face: Pick<Hosts, "default" | "find" | "hasSeveral"> = {
    default: host("good"),
    hasSeveral: !isAlone,
    find: (name) => {
      if (isAlone) throw new Error("There is nothing to choose");
      return host(name === "bad.test" ? "bad" : "good");
    },
  };
  return face as Hosts;
}

type Outcome = HandshakeResult | "failed" | "closed";

/** Handshakes as a client with these options. Returns the outcome. */
function shaken(
  options: tls.ConnectionOptions,
  clock = manualClock(),
  speaks = true,
  all = hosts(),
): Promise<Outcome> {
  const [near, far] = duplexPair();
  return new Promise((resolve) => {
    shakeHands(near as never, all, clock, (outcome) =>
      resolve(outcome instanceof Error ? "failed" : outcome),
    );
    near.once("close", () => setTimeout(resolve, 50, "closed"));
    if (!speaks) return;
    const client = tls.connect({
      socket: far,
      ca: authority.certificate,
      servername: "localhost",
      ...options,
    });
    client.on("error", () => {});
  });
}

test("a host that is alone serves every server name, and is not looked for", async () => {
  for (const servername of ["localhost", "bad.test", ""]) {
    const checkServerIdentity = (): undefined => undefined;
    const outcome = await within(
      20_000,
      "the handshake",
      shaken({ ALPNProtocols: ["h2"], servername, checkServerIdentity }, manualClock(), true, hosts(true)),
    );
    assert.is(typeof outcome === "string" ? outcome : outcome.host.name, "good", servername);
  }
});

test("ALPN selects the protocol, and the server name the host", async () => {
  for (const [protocols, alpn] of [
    [["h2", "http/1.1"], "h2"],
    [["http/1.1"], "http/1.1"],
    [[], "http/1.1"],
  ] as const) {
    const outcome = await within(20_000, "a handshake", shaken({ ALPNProtocols: [...protocols] }));
    assert.equal(typeof outcome === "string" ? outcome : [outcome.alpn, outcome.host.name], [alpn, "good"]);
  }
});

test("an unrequested client certificate is refused by name, not by a broken handshake", async () => {
  const own = authority.issue({ name: "alice", usage: "client" });
  const outcome = await within(20_000, "a handshake", shaken({ cert: own.certificate, key: own.key }));
  assert.is(typeof outcome === "string" ? outcome : outcome.identity.kind, "refused");
});

test("an exception while a client certificate is read ends only this client's connection", async () => {
  const all = hosts(true, () => {
    throw new Error("unforeseen");
  });
  const outcome = await within(20_000, "a handshake", shaken({}, manualClock(), true, all));
  assert.is(outcome, "failed");
});

test("a host without a good certificate refuses its own clients, and is counted", async () => {
  const outcome = await within(20_000, "the refusal", shaken({ servername: "bad.test" }));
  assert.is(outcome, "failed");
});

test("a client that does not finish is closed", async () => {
  const clock = manualClock();
  const outcome = shaken({}, clock, false);
  clock.advance(limits.handshakeMs);
  assert.is(await within(20_000, "the end", outcome), "closed");
});

test("the accepted socket closes with the TLS socket, and keeps no listener of the handshake", async () => {
  const { near: dialled, far: accepted, close } = await openPair();
  const shake = Promise.withResolvers<HandshakeResult | Error>();
  shakeHands(accepted, hosts(), manualClock(), shake.resolve);
  tls.connect({ socket: dialled, ca: authority.certificate, servername: "localhost" }).on("error", () => {});
  const result = await within(20_000, "a handshake", shake.promise);
  const socket = result instanceof Error ? undefined : result.socket;
  assert.is(accepted.listenerCount("connect"), 0);
  const fresh = new tls.TLSSocket(new net.Socket(), { isServer: true });
  for (const event of ["error", "close"])
    assert.is(socket?.listenerCount(event), fresh.listenerCount(event), event);
  const isClosed = new Promise((resolve) => accepted.on("close", resolve));
  socket?.destroy();
  await within(20_000, "the end", isClosed);
  close();
});

test.run();
