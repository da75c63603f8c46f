import { suite } from "uvu";
import * as assert from "uvu/assert";
import { networksOf } from "../../../src/base/address.ts";
import { Failure } from "../../../src/base/failure.ts";
import { readProxyHeader } from "../../../src/proxy/downstream/proxy-protocol-listener.ts";
import type { Ends } from "../../../src/upstream/net/proxy-protocol.ts";
import { manualClock } from "../../support/clock.ts";
import { openPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/downstream/proxy-protocol-listener");

type Mode = "Disabled" | "Optional" | "Required";
const balancer = "127.0.0.0/8";
const elsewhere = "10.0.0.0/8";

/**
 * Returns the client address that the listener accepts and the text that it reads afterwards, or the reason why it
 * refuses the connection.
 */
async function met(mode: Mode, trusted: string, said: string): Promise<string> {
  const { near, far, close } = await openPair();
  const rules = { mode, trusted: networksOf([trusted]) };
  const told = new Promise<Ends | Failure>((resolve) => readProxyHeader(far, rules, manualClock(), resolve));
  near.write(Buffer.from(said, "latin1"));
  const ends = await within(20_000, "an introduction", told);
  let outcome = "";
  if (ends instanceof Failure) outcome = ends.message;
  else {
    const heard = new Promise<Buffer>((resolve) => far.once("data", resolve));
    far.resume();
    const { address, port } = ends.source;
    const isOwn = port === far.remotePort && address === "127.0.0.1";
    const rest = await within(20_000, "the rest", heard);
    outcome = `${isOwn ? "own" : `${address}:${port} to ${ends.destination.port}`}, then ${rest.toString("latin1")}`;
  }
  close();
  return outcome;
}

const header = "PROXY TCP4 203.0.113.7 192.0.2.1 1234 6443\r\n";
const notTheirs = "PROXY header from an untrusted source";

test("where the PROXY protocol is disabled no header is looked for", async () => {
  assert.is(await met("Disabled", balancer, "hello"), "own, then hello");
  assert.is(await met("Disabled", balancer, header), `own, then ${header}`);
});

test("a trusted balancer's client is the one it names", async () => {
  for (const mode of ["Optional", "Required"] as const) {
    assert.is(await met(mode, balancer, `${header}hello`), "203.0.113.7:1234 to 6443, then hello");
    assert.is(await met(mode, balancer, "PROXY UNKNOWN\r\nhello"), "own, then hello");
  }
});

test("a header is missing only where one must be", async () => {
  assert.is(await met("Optional", balancer, "hello"), "own, then hello");
  assert.is(await met("Required", balancer, "hello"), "PROXY header is missing");
});

test("a source that is not trusted may not send a header", async () => {
  assert.is(await met("Optional", elsewhere, `${header}hello`), notTheirs);
  assert.is(await met("Optional", elsewhere, "PROXY nonsense\r\n"), notTheirs);
  assert.is(await met("Optional", elsewhere, "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c0123456789ab"), notTheirs);
  assert.is(await met("Optional", elsewhere, "hello"), "own, then hello");
  for (const said of [header, "hello"]) assert.is(await met("Required", elsewhere, said), notTheirs);
});

test("a malformed header is refused with its reason", async () => {
  assert.match(await met("Optional", balancer, "PROXY TCP4 x\r\n"), "PROXY header is malformed: its line");
});

test.run();
