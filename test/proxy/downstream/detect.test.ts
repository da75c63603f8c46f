import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { detect, type Protocol } from "../../../src/proxy/downstream/listen.ts";
import { manualClock } from "../../support/clock.ts";
import { openPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/downstream/detect");

async function spoken(...chunks: (string | Buffer)[]): Promise<{ spoken: Protocol; read: string }> {
  const pair = await openPair();
  const { near, far } = pair;
  const told = new Promise<{ spoken: Protocol; read: string }>((resolve) => {
    detect(far, manualClock(), (outcome) => {
      far.once("data", (chunk: Buffer) => resolve({ spoken: outcome, read: chunk.toString("latin1") }));
      if (outcome === "tls") far.resume();
    });
  });
  for (const chunk of chunks) {
    near.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const heard = await within(20_000, "what is spoken", told);
  pair.close();
  return heard;
}

test("TLS, HTTP/2 and HTTP/1.1 are distinguished, and no byte is consumed", async () => {
  assert.equal(await spoken("\u0016\u0003\u0001rest"), { spoken: "tls", read: "\u0016\u0003\u0001rest" });
  assert.equal(await spoken("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), {
    spoken: "h2",
    read: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  });
  assert.equal(await spoken("GET / HTTP/1.1\r\n"), { spoken: "http/1.1", read: "GET / HTTP/1.1\r\n" });
});

test("it waits until the protocol is certain", async () => {
  const { spoken: outcome } = await spoken("P", "RI * HTT", "P/2.0\r\n\r\n");
  assert.is(outcome, "h2");
  assert.is((await spoken("P", "UT / HTTP/1.1\r\n")).spoken, "http/1.1");
});

test("a silent socket is closed at the deadline (A22)", async () => {
  const pair = await openPair();
  const { near, far } = pair;
  const clock = manualClock();
  detect(far, clock, () => assert.unreachable());
  clock.advance(limits.handshakeMs + 1);
  near.resume();
  await within(20_000, "the close", new Promise((resolve) => near.once("close", resolve)));
  pair.close();
});

test.run();
