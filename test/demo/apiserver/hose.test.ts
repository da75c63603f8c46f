import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { Hose } from "../../../src/demo/apiserver/hose.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/apiserver/hose");
const aWhileMs = 100;

/** Says back what it hears. */
const echo = net.createServer((socket) => void socket.on("error", () => {}).pipe(socket));
await new Promise<void>((resolve) => void echo.listen(0, "127.0.0.1", resolve));
let targetPort = (echo.address() as AddressInfo).port;
const hose = new Hose(() => targetPort);
const port = await hose.start();
if (port instanceof Failure) throw new Error(port.message);
test.after(() => {
  hose.stop();
  echo.close();
});

function dial(): net.Socket {
  return net.connect({ port: port as number, host: "127.0.0.1" }).setEncoding("utf8");
}

async function heard(socket: net.Socket): Promise<string> {
  const [text] = await within(20_000, "something", once(socket, "data"));
  return String(text);
}

/** Nothing is said, and nothing ends, for a while. */
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

test("pinched, old and new sockets meet silence, and released what waited flows on", async () => {
  const old = dial();
  old.write("one");
  assert.is(await heard(old), "one");
  hose.pinch();
  const fresh = dial();
  await within(20_000, "the kernel", once(fresh, "connect"));
  old.write("two");
  fresh.write("three");
  assert.equal(await Promise.all([isSilent(old), isSilent(fresh)]), [true, true]);
  hose.release();
  assert.equal(await Promise.all([heard(old), heard(fresh)]), ["two", "three"]);
  old.destroy();
  fresh.destroy();
});

test("an end that dies in a hole is not heard of before it is released", async () => {
  const far = Promise.withResolvers<net.Socket>();
  const target = net.createServer(far.resolve);
  await new Promise<void>((resolve) => void target.listen(0, "127.0.0.1", resolve));
  const before = targetPort;
  targetPort = (target.address() as AddressInfo).port;
  const near = dial();
  const dying = await within(20_000, "the far end", far.promise);
  hose.pinch();
  dying.destroy();
  assert.is(await isSilent(near), true);
  const closed = once(near, "close");
  hose.release();
  await within(20_000, "its close", closed);
  target.close();
  targetPort = before;
});

test("where nobody listens the socket is broken off", async () => {
  const before = targetPort;
  targetPort = 1;
  const [error] = await within(20_000, "an error", once(dial(), "error"));
  assert.match(String(error), "ECONNRESET");
  targetPort = before;
});

test.run();
