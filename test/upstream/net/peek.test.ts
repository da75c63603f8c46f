import type { Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { type Decide, peek, peekedBytes } from "../../../src/upstream/net/peek.ts";
import { manualClock } from "../../support/clock.ts";
import { cpuMs } from "../../support/cpu.ts";
import { openPair, type SocketPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/peek");

let pairs: SocketPair[] = [];
test.after.each(() => {
  for (const pair of pairs) pair.close();
  pairs = [];
});

async function open(): Promise<SocketPair> {
  const pair = await openPair();
  pairs.push(pair);
  return pair;
}

/** Decides once `count` bytes have been received, and consumes `taken` of them. */
const after =
  (count: number, taken: number): Decide<string> =>
  (seen) =>
    seen.length < count ? undefined : { verdict: seen.toString("latin1"), taken };

function closed(socket: Socket): Promise<unknown> {
  return within(20_000, "the close", new Promise((resolve) => socket.once("close", resolve)));
}

test("bytes that come one by one are seen together, and what is not taken comes again", async () => {
  const { near, far } = await open();
  const told = new Promise<string>((resolve) => peek(far, manualClock(), after(6, 2), resolve));
  for (const octet of "abcdef") {
    near.write(octet);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  assert.is(await within(20_000, "the verdict", told), "abcdef");
  const next = new Promise<string>((resolve) => peek(far, manualClock(), after(5, 0), resolve));
  near.write("g");
  assert.is(await within(20_000, "what is left", next), "cdefg");
});

test("a socket that has been told has no further callback, and is not closed by the deadline", async () => {
  const { near, far } = await open();
  const clock = manualClock();
  let times = 0;
  const told = new Promise<string>((resolve) => {
    peek(far, clock, after(1, 1), (verdict) => {
      times += 1;
      resolve(verdict);
    });
  });
  near.write("a");
  await within(20_000, "the verdict", told);
  clock.advance(10 * limits.handshakeMs);
  near.write("b");
  far.resume();
  const heard = new Promise<string>((resolve) => far.once("data", (chunk: Buffer) => resolve(String(chunk))));
  assert.is(await within(20_000, "the next byte", heard), "b");
  assert.is(times, 1);
});

test("silence and half a word end at the deadline (A22), and an end before that is nothing", async () => {
  for (const said of ["", "a"]) {
    const { near, far } = await open();
    const clock = manualClock();
    peek(far, clock, after(2, 0), () => assert.unreachable());
    near.resume();
    if (said !== "") {
      near.write(said);
      await new Promise((resolve) => far.once("data", resolve));
    }
    clock.advance(limits.handshakeMs + 1);
    await closed(near);
  }
  const { near, far } = await open();
  peek(far, manualClock(), after(2, 0), () => assert.unreachable());
  near.end("a");
  await closed(far);
});

test("first bytes without end are bounded over all sockets; a client that sends its own at once is not delayed by them", async () => {
  const share = 1024 * 1024;
  const flood = await Promise.all(Array.from({ length: peekedBytes / share + 2 }, () => open()));
  const clock = manualClock();
  for (const { far } of flood)
    peek(
      far,
      clock,
      () => undefined,
      () => {},
    );
  for (const { near } of flood) near.write(Buffer.alloc(share + 1));
  const isCut = (): boolean => flood.some(({ far }) => far.destroyed);
  for (let tries = 0; tries < 200 && !isCut(); tries += 1) await new Promise((r) => setTimeout(r, 10));
  assert.ok(isCut(), "all of it was kept");
  const { near, far } = await open();
  const told = new Promise<string>((resolve) => peek(far, clock, after(5, 0), resolve));
  near.write("hello");
  assert.is(await within(20_000, "the verdict", told), "hello");
  clock.advance(limits.handshakeMs + 1);
  const left = flood.map(({ far: one }) => one).filter((one) => !one.destroyed);
  await Promise.all(left.map(closed));
});

test("64 KiB that come byte by byte cost no more than a few copies of them", () => {
  const handlers = new Map<string, (chunk: Buffer) => void>();
  const fake = {
    on: (name: string, run: (chunk: Buffer) => void) => handlers.set(name, run),
    off: () => {},
    pause: () => {},
    resume: () => {},
    unshift: () => {},
  };
  const size = 65_536;
  let seen = 0;
  const socket = fake as unknown as Socket;
  peek(socket, manualClock(), after(size, 0), (verdict) => {
    seen = verdict.length;
  });
  const spentMs = cpuMs(() => {
    for (let at = 0; at < size; at += 1) handlers.get("data")?.(Buffer.from([at & 0xff]));
  });
  assert.is(seen, size);
  // If `peek` copied all received bytes for each new byte, it would copy 2 GiB, which takes seconds.
  assert.ok(spentMs < 500, `${spentMs} ms`);
});

test.run();
