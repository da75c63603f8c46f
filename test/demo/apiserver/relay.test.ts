import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Relay } from "../../../demo/apiserver/relay.ts";
import { Failure } from "../../../src/base/failure.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/apiserver/relay");
const aWhileMs = 100;

/** Echoes what it receives. */
const echo = net.createServer((socket) => void socket.on("error", () => {}).pipe(socket));
await new Promise<void>((resolve) => void echo.listen(0, "127.0.0.1", resolve));
const { relay, dial } = await relayTo((echo.address() as AddressInfo).port);
test.after(() => {
  relay.stop();
  echo.close();
});

async function relayTo(target: number): Promise<{ relay: Relay; dial: () => net.Socket }> {
  const made = new Relay(target);
  const port = await made.start();
  if (port instanceof Failure) throw new Error(port.message);
  return { relay: made, dial: () => net.connect({ port, host: "127.0.0.1" }).setEncoding("utf8") };
}

async function heard(socket: net.Socket): Promise<string> {
  const [text] = await within(20_000, "something", once(socket, "data"));
  return String(text);
}

/** Resolves to true if the socket receives nothing and does not end for a while. */
async function isSilent(socket: net.Socket): Promise<boolean> {
  let isQuiet = true;
  socket.resume();
  for (const what of ["data", "end", "error", "close"]) socket.once(what, () => (isQuiet = false));
  await new Promise((resolve) => setTimeout(resolve, aWhileMs));
  for (const what of ["data", "end", "error", "close"]) socket.removeAllListeners(what);
  return isQuiet;
}

test("what goes in at one end comes out at the other", async () => {
  const socket = dial();
  socket.write("hello");
  assert.is(await heard(socket), "hello");
  socket.destroy();
});

test("blocked, old and new sockets get no answer, and unblocked the buffered data flows on", async () => {
  const old = dial();
  old.write("one");
  assert.is(await heard(old), "one");
  relay.block(true);
  const fresh = dial();
  await within(20_000, "the kernel", once(fresh, "connect"));
  old.write("two");
  fresh.write("three");
  assert.equal(await Promise.all([isSilent(old), isSilent(fresh)]), [true, true]);
  relay.block(false);
  assert.equal(await Promise.all([heard(old), heard(fresh)]), ["two", "three"]);
  old.destroy();
  fresh.destroy();
});

test("a close while blocked is reported when unblocked", async () => {
  const far = Promise.withResolvers<net.Socket>();
  const target = net.createServer(far.resolve);
  await new Promise<void>((resolve) => void target.listen(0, "127.0.0.1", resolve));
  const other = await relayTo((target.address() as AddressInfo).port);
  const near = other.dial();
  const dying = await within(20_000, "the far end", far.promise);
  other.relay.block(true);
  dying.destroy();
  assert.is(await isSilent(near), true);
  const closed = once(near, "close");
  other.relay.block(false);
  await within(20_000, "its close", closed);
  target.close();
  other.relay.stop();
});

test("a target that refuses connections resets the socket", async () => {
  const other = await relayTo(1);
  const [error] = await within(20_000, "an error", once(other.dial(), "error"));
  assert.match(String(error), "ECONNRESET");
  other.relay.stop();
});

test.run();
