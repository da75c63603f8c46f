import { type AddressInfo, createServer, type Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { closeAfterFlush } from "../../../src/proxy/net/close-after-flush.ts";
import { manualClock } from "../../support/clock.ts";
import { until } from "../../support/h1.ts";
import { connectRaw } from "../../support/raw.ts";

const test = suite("proxy/net/close-after-flush");

test("last words arrive although the peer goes on talking, and then the socket goes", async () => {
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

test.run();
