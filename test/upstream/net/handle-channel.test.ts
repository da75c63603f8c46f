import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import {
  connectChannel,
  type HandleChannel,
  type HandleServer,
  listenForChannels,
  type Message,
  mostChannels,
  mostLineBytes,
  type PassedHandle,
} from "../../../src/upstream/net/handle-channel.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/handle-channel");

const folder = mkdtempSync(join(tmpdir(), "watchkeeper-channel-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

type Received = { readonly message: Message; readonly handle: PassedHandle | undefined };

/** Returns both ends of a channel in this process, and the list of what the listening end has received. */
async function pair() {
  const path = join(folder, `${count++}.sock`);
  const received: Received[] = [];
  const ended = { far: 0, near: 0 };
  const server = listenForChannels(path, () => ({
    received: (message, handle) => void received.push({ message, handle }),
    ended: () => void (ended.far += 1),
  })) as HandleServer;
  const near = (await connectChannel(path, {
    received: () => {},
    ended: () => void (ended.near += 1),
  })) as HandleChannel;
  const close = (): void => {
    near.close();
    server.close();
  };
  return { path, received, ended, near, close };
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const look = async (): Promise<void> => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await within(10_000, what, look());
}

/** Returns a client's socket, and the server's socket of the same connection. */
async function joined(): Promise<{
  readonly client: Socket;
  readonly accepted: Socket;
  readonly server: Server;
}> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const server = createServer({ allowHalfOpen: true }, resolve);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  return { client, accepted: await promise, server };
}

test("a passed listening socket keeps the clients that no process has accepted", async () => {
  const { near, received, close } = await pair();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  assert.ok(await near.send({ kind: "listener" }, server));
  server.close();
  const client = connect(port, "127.0.0.1");
  let word = "";
  client.on("data", (chunk: Buffer) => void (word += chunk.toString()));
  await until("the listener", () => received.length === 1);
  const successor = createServer((socket) => socket.end("served"));
  await new Promise<void>((resolve) => successor.listen(received[0]?.handle, resolve));
  await until("the answer", () => word === "served");
  successor.close();
  close();
});

test("messages without a socket arrive in order among those with one", async () => {
  const { near, received, close } = await pair();
  const { client, accepted, server } = await joined();
  for (let at = 0; at < 30; at += 1) void near.send({ at }, at % 3 === 0 ? accepted : undefined);
  await until("30 messages", () => received.length === 30);
  assert.equal(
    received.map(({ message }) => message["at"]),
    Array.from({ length: 30 }, (_, at) => at),
  );
  assert.equal(
    received.map(({ handle }) => handle !== undefined),
    Array.from({ length: 30 }, (_, at) => at % 3 === 0),
  );
  for (const { handle } of received) handle?.close();
  client.destroy();
  accepted.destroy();
  server.close();
  close();
});

test("only this user can connect; a channel that ends tells both sides; then nothing is sent", async () => {
  const { path, near, ended, close } = await pair();
  assert.is(statSync(path).mode & 0o777, 0o600);
  near.close();
  near.close();
  await until("both ends", () => ended.far === 1 && ended.near === 1);
  assert.is(await near.send({ kind: "late" }), false);
  close();
  assert.ok((await connectChannel(path, { received: () => {}, ended: () => {} })) instanceof Failure);
});

test("a directory that cannot be written is a Failure", () => {
  chmodSync(folder, 0o700);
  const path = join(folder, "missing", "a.sock");
  assert.ok(listenForChannels(path, () => ({ received: () => {}, ended: () => {} })) instanceof Failure);
});

test("neither a line without end nor one that is no message is kept", async () => {
  for (const text of ["x".repeat(mostLineBytes + 1), "no message\n", '{"hasHandle":1}\n']) {
    const { path, ended, received, close } = await pair();
    const raw = connect(path);
    raw.on("error", () => {});
    raw.write(text);
    await until("the end of the channel", () => ended.far === 1);
    assert.is(received.length, 0);
    raw.destroy();
    close();
  }
});

test("sockets that no line announces end the channel", async () => {
  const { path, received, ended, close } = await pair();
  const { client, accepted, server } = await joined();
  const binding = Reflect.get(process, "binding") as (
    name: string,
  ) => Record<string, new (kind?: number) => object>;
  const { Pipe, PipeConnectWrap } = binding("pipe_wrap");
  const { WriteWrap } = binding("stream_wrap");
  if (Pipe === undefined || PipeConnectWrap === undefined || WriteWrap === undefined) throw new Error("Node");
  // An IPC pipe, which can carry sockets, like the one of the channel itself.
  const pipe = new Pipe(2) as {
    connect(request: object, path: string): number;
    writeUtf8String(request: object, text: string, handle: unknown): number;
    close(): void;
  };
  await new Promise((oncomplete) => pipe.connect(Object.assign(new PipeConnectWrap(), { oncomplete }), path));
  const handle: unknown = Reflect.get(accepted, "_handle");
  for (let at = 0; at < 20; at += 1) pipe.writeUtf8String(new WriteWrap(), "{}\n", handle);
  await until("the end of the channel", () => ended.far === 1);
  assert.ok(received.length <= 1, `${received.length}`);
  pipe.close();
  client.destroy();
  accepted.destroy();
  server.close();
  close();
});

test("at most so many channels are open", async () => {
  const { path, close } = await pair();
  const raws = Array.from({ length: mostChannels + 3 }, () => connect(path));
  let closed = 0;
  for (const raw of raws) {
    raw.on("error", () => {});
    raw.on("close", () => (closed += 1));
    raw.resume();
  }
  // One of the permitted channels is that of `pair`, so four of these connections exceed the limit.
  await until("the channels above the limit", () => closed === 4);
  for (const raw of raws) raw.destroy();
  close();
});

test.run();
