import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createNetServer, Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { stopParsing } from "../../../src/proxy/net/stop-parsing.ts";
import { within } from "../../support/within.ts";

const test = suite("stop-parsing");

test("of 2,000 requests that one read brings nothing is parsed any more, listening or not", async () => {
  let heads = 0;
  const server = createServer(({ socket }) => {
    heads += 1;
    if (heads < 3) return;
    stopParsing(socket);
    socket.destroy();
  });
  const front = createNetServer((socket) => server.emit("connection", socket));
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

test("a socket that nobody parses is let alone", () => {
  const socket = new Socket();
  stopParsing(socket);
  assert.is(Reflect.get(socket, "parser"), undefined);
});

test.run();
