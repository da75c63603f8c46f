import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { readInto } from "../../../src/upstream/net/read-into.ts";
import { testPki } from "../../support/pki.ts";
import { openPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/read-into");

/**
 * Collects the text that a socket reads, and the memory in which each of its chunks lay. `said` resolves once the text
 * has been read.
 */
function listen(socket: net.Socket): { memory: Set<ArrayBufferLike>; said(text: string): Promise<void> } {
  let text = "";
  const memory = new Set<ArrayBufferLike>();
  let look = (): void => {};
  const hear = (chunk: Buffer): void => {
    text += chunk.toString();
    look();
  };
  assert.ok(
    readInto(socket, {
      receive(chunk) {
        memory.add(chunk.buffer);
        hear(chunk);
      },
    }),
    "this Node has what is borrowed from it",
  );
  socket.on("data", hear);
  return {
    memory,
    said: (wanted) =>
      within(
        2000,
        wanted,
        new Promise((resolve) => {
          look = () => {
            if (text === wanted) resolve();
          };
          look();
        }),
      ),
  };
}

test("all chunks of all plain sockets come in one buffer", async () => {
  const { near, far, close } = await openPair();
  const ears = [listen(near), listen(far)];
  for (const [at, word] of ["one ", "two ", "three"].entries()) {
    near.write(word);
    far.write(word);
    for (const ear of ears) await ear.said("one two three".slice(0, [4, 8, 13][at]));
  }
  assert.is(new Set(ears.flatMap(({ memory }) => [...memory])).size, 1);
  close();
});

test("so do those of a TLS socket on top of an accepted one, and of one that the proxy dialled", async () => {
  const { serving, authority } = await testPki();
  const accepted = Promise.withResolvers<tls.TLSSocket>();
  const server = net.createServer((socket) => {
    const secure = new tls.TLSSocket(socket, {
      isServer: true,
      secureContext: tls.createSecureContext({ cert: serving.certificate, key: serving.key }),
    });
    secure.once("secure", () => accepted.resolve(secure));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const near = tls.connect({ host: "127.0.0.1", port, servername: "localhost", ca: authority.certificate });
  const nearEar = listen(near);
  near.write("asked");
  const far = await within(20_000, "the handshake", accepted.promise);
  const farEar = listen(far);
  await farEar.said("asked");
  far.write("x".repeat(100_000));
  await nearEar.said("x".repeat(100_000));
  assert.is(new Set([...nearEar.memory, ...farEar.memory]).size, 1);
  near.destroy();
  far.destroy();
  server.close();
});

test("what was put back comes first", async () => {
  const { near, far, close } = await openPair();
  far.once("data", (chunk: Buffer) => {
    far.pause();
    far.unshift(chunk);
    const ear = listen(far);
    far.resume();
    near.write(" second");
    heard.resolve(ear.said("first second"));
  });
  const heard = Promise.withResolvers<Promise<void>>();
  near.write("first");
  await heard.promise;
  close();
});

test("a socket that is paused is not read", async () => {
  const { near, far, close } = await openPair();
  const ear = listen(far);
  near.write("a");
  await ear.said("a");
  far.pause();
  near.write("b");
  await new Promise((resolve) => setTimeout(resolve, 50));
  await ear.said("a");
  far.resume();
  await ear.said("ab");
  close();
});

test("one without a handle is left as it is", () => {
  assert.not(readInto(new net.Socket(), { receive() {} }));
});

test.run();
