import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { passFirstBytes } from "../../../src/upstream/net/tls-input.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/tls-input");

const { authority, serving } = await testPki();
const secureContext = tls.createSecureContext({ cert: serving.certificate, key: serving.key });

/** A server's TLS socket, whose ClientHello was read before TLS began. */
type Begun = { readonly socket: net.Socket; readonly secure: tls.TLSSocket };

/** Lets a client connect and `begin` TLS on the server's socket. Returns the client after its handshake. */
async function handshakeWith(begin: (begun: Begun) => void, protocols: string[]): Promise<tls.TLSSocket> {
  const server = net.createServer((socket) => {
    socket.once("data", (hello: Buffer) => {
      socket.pause();
      socket.unshift(hello);
      begin({ socket, secure: new tls.TLSSocket(socket, { isServer: true, secureContext }) });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const client = tls.connect({
    port,
    host: "127.0.0.1",
    ca: authority.certificate,
    servername: "localhost",
    ALPNProtocols: protocols,
  });
  try {
    await within(20_000, "a handshake", once(client, "secureConnect"));
    return client;
  } finally {
    client.destroy();
    server.close();
  }
}

/** Long names, so that the ClientHello has several kB. */
const longNames = Array.from({ length: 20 }, (_, at) => `protocol-${at}-`.padEnd(200, "x"));

test("a long ClientHello reaches TLS whole, in pieces that do not fill Node's first buffer of 1,024 bytes", async () => {
  const pieces: number[] = [];
  await handshakeWith(({ socket, secure }) => {
    const handle = Reflect.get(secure, "_handle") as { receive(bytes: Buffer): void };
    const receive = handle.receive.bind(handle);
    handle.receive = (bytes) => {
      pieces.push(bytes.length);
      receive(bytes);
    };
    passFirstBytes(socket, secure);
    assert.is(socket.readableLength, 0);
  }, longNames);
  assert.ok(pieces.length >= 4, `${pieces.length} pieces`);
  assert.ok(pieces.every((bytes) => bytes < 1024));
});

test("in a Node version without the internal call, the bytes stay in the socket's stream", async () => {
  await handshakeWith(({ socket, secure }) => {
    const bytes = socket.readableLength;
    passFirstBytes(socket, { _handle: {} } as never);
    assert.is(socket.readableLength, bytes);
    secure.on("error", () => {});
  }, longNames);
});

test("a socket that is destroyed in the same turn gets no bytes", async () => {
  const given: Buffer[] = [];
  const socket = { read: () => Buffer.alloc(3000) };
  const secure = { destroyed: true, _handle: { receive: (bytes: Buffer) => given.push(bytes) } };
  passFirstBytes(socket as never, secure as never);
  await new Promise(setImmediate);
  assert.is(given.length, 0);
});

test.run();
