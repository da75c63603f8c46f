import { type AddressInfo, createServer } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { abort } from "../../../src/proxy/net/abort.ts";
import { connectRaw } from "../../support/raw.ts";

const test = suite("proxy/net/abort");

test("a socket that is broken off ends in a reset, and twice is once", async () => {
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

test.run();
