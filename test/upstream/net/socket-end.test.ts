import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { abort, closeAfterFlush, stopParsing } from "../../../src/upstream/net/socket-end.ts";
import { manualClock } from "../../support/clock.ts";
import { until } from "../../support/h1.ts";
import { connectRaw } from "../../support/raw.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/socket-end");

test("the last bytes arrive although the peer goes on sending, and then the socket is closed", async () => {
  const clock = manualClock();
  let accepted: Socket | undefined;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.end("last words");
    closeAfterFlush(socket, clock);
    accepted = socket;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const peer = await connectRaw((server.address() as AddressInfo).port);
  peer.send(Buffer.alloc(1 << 20));
  assert.is(await peer.ended(), "last words");
  assert.not(accepted?.destroyed);
  await until("all of it read", () => peer.socket.writableLength === 0);
  clock.advance(1000);
  assert.ok(accepted?.destroyed);
  peer.socket.destroy();
  server.close();
});

test("an aborted socket ends in a reset; a second abort does nothing", async () => {
  const server = createServer((socket) => {
    socket.on("data", () => {
      abort(socket);
      abort(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const peer = await connectRaw((server.address() as AddressInfo).port);
  peer.send("x");
  await peer.closed();
  assert.not(peer.isEnded);
  server.close();
});

test("of 2,000 requests that one read brings nothing is parsed any more, listening or not", async () => {
  let heads = 0;
  const server = createHttpServer(({ socket }) => {
    heads += 1;
    if (heads < 3) return;
    stopParsing(socket);
    socket.destroy();
  });
  const front = createServer((socket) => server.emit("connection", socket));
  for (const each of [server, front]) {
    heads = 0;
    await new Promise<void>((resolve) => each.listen(0, "127.0.0.1", resolve));
    const { port } = each.address() as AddressInfo;
    const socket = connect(port, "127.0.0.1", () =>
      socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2000)),
    );
    socket.on("error", () => {}).resume();
    await within(20_000, "its end", new Promise((resolve) => socket.on("close", resolve)));
    each.close();
    assert.is(heads, 3);
  }
});

test("a socket without a parser is left alone", () => {
  const socket = new Socket();
  stopParsing(socket);
  assert.is(Reflect.get(socket, "parser"), undefined);
});

test.run();
