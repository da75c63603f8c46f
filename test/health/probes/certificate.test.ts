import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { healthLimits } from "../../../src/health/limits.ts";
import { Expiries, loopbackName } from "../../../src/health/probes/certificate.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { openUntrusting } from "../../../src/upstream/net/connect.ts";
import { manualClock } from "../../support/clock.ts";
import { within } from "../../support/within.ts";

const test = suite("health/probes/certificate");
const may = "May  1 10:00:00 2027 GMT";
const june = "Jun  1 10:00:00 2027 GMT";

/** Presents one certificate to clients that send the loopback name as SNI, and another to all others. */
async function apiserver(hasLoopback: boolean): Promise<{ port: number; close: () => void }> {
  const authority = await createAuthority({ name: "test", clock: wallClock });
  const pairOf = (name: string): { cert: string; key: string } => {
    const { certificate, key } = authority.issue({ name, hosts: [name] });
    return { cert: certificate, key };
  };
  const server = tls.createServer({
    ...pairOf("kube-apiserver"),
    SNICallback: (name, done) => {
      const isLoopback = hasLoopback && name === loopbackName;
      done(null, tls.createSecureContext(pairOf(isLoopback ? loopbackName : "kube-apiserver")));
    },
  });
  server.on("tlsClientError", () => {});
  server.on("secureConnection", (socket) => socket.on("error", () => {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  return { port, close: () => server.close() };
}

test("a certificate is journaled when it is first seen and when it is another", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const expiries = new Expiries({ clock, journal, openLoopback: () => undefined });
  for (const notAfter of [may, may, june, "not a date"]) expiries.seen("a", notAfter);
  assert.equal(
    entries.map((entry) => entry.kind === "certificate.observed" && entry.notAfter),
    ["2027-05-01T10:00:00Z", "2027-06-01T10:00:00Z"],
  );
  assert.equal(expiries.all, [{ purpose: "backend", name: "a", notAfterMs: Date.parse(june) }]);
});

test("the loopback certificate is read by its name; of a server that has none nothing is told", async () => {
  for (const hasLoopback of [true, false]) {
    const { port, close } = await apiserver(hasLoopback);
    const address = { name: "a", host: "127.0.0.1", port, tls: { ca: undefined, serverName: "x" } };
    let closed: Promise<void> = Promise.resolve();
    const expiries = new Expiries({
      clock: wallClock,
      journal: new Journal(wallClock),
      openLoopback: () => {
        const socket = openUntrusting(address, loopbackName);
        closed = new Promise((resolve) => socket?.once("close", () => resolve()));
        return socket;
      },
    });
    expiries.seen("a", may);
    await within(20_000, "the look", closed);
    close();
    assert.equal(
      expiries.all.map(({ purpose }) => purpose),
      hasLoopback ? ["backend", "backend-loopback"] : ["backend"],
    );
  }
});

test("it is looked at once an hour, and a backend that is gone is forgotten", () => {
  const clock = manualClock();
  let looks = 0;
  const openLoopback = (): undefined => {
    looks += 1;
    return undefined;
  };
  const expiries = new Expiries({ clock, journal: new Journal(clock), openLoopback });
  for (let second = 0; second <= healthLimits.loopbackLookMs / 1000; second += 1) {
    expiries.seen("a", may);
    clock.advance(1000);
  }
  assert.is(looks, 2);
  expiries.reconcile(["b"]);
  assert.equal(expiries.all, []);
  expiries.seen("a", may);
  assert.is(looks, 3);
});

test.run();
