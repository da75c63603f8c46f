import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ApiserverProcess } from "../../../../src/demo/apiserver/apiserver-process.ts";
import type { Answer, Ask } from "../../../../src/demo/apiserver/ask.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/apiserver/apiserver-process");
const { authority, serving } = await testPki();

type Asked = { readonly ask: Ask; readonly answer: Answer };
const waiting: Asked[] = [];
let heard = Promise.withResolvers<Asked>();
const one = new ApiserverProcess({
  ...serving,
  handle: (ask, answer) => {
    waiting.push({ ask, answer });
    heard.resolve({ ask, answer });
  },
});
const failure = await one.start();
if (failure !== undefined) throw new Error(failure.message);
const session = http2.connect(`https://127.0.0.1:${one.port}`, { ca: authority.certificate });
session.on("error", () => {});
test.before.each(() => {
  heard = Promise.withResolvers<Asked>();
});
test.after(async () => {
  session.destroy();
  await one.kill();
});

test("a request reaches this process whole, and its answer goes back piece by piece", async () => {
  const stream = session.request({ ":method": "POST", ":path": "/a", "x-b": "c" });
  stream.end("body");
  const { ask, answer } = await within(20_000, "the request", heard.promise);
  assert.equal([ask.method, ask.path, Buffer.from(ask.body).toString()], ["POST", "/a", "body"]);
  assert.ok(ask.fields.some(([name, value]) => name === "x-b" && value === "c"));
  answer.head(200, [["content-type", "text/plain"]]);
  answer.write(Buffer.from("one "));
  answer.write(Buffer.from("two"));
  answer.end();
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await within(20_000, "the end", once(stream, "end"));
  assert.is(text, "one two");
});

test("an asker that leaves is told here", async () => {
  const stream = session.request({ ":path": "/watch" });
  const { answer } = await within(20_000, "the request", heard.promise);
  const gone = new Promise<void>((resolve) => answer.onGone(resolve));
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await within(20_000, "its leaving", gone);
});

test("what a frozen process is sent counts as queued", async () => {
  const stream = session.request({ ":path": "/watch" });
  const { answer } = await within(20_000, "the request", heard.promise);
  answer.head(200, []);
  await within(20_000, "a head", once(stream, "response"));
  one.freeze();
  answer.write(Buffer.alloc(1_000));
  answer.write(Buffer.alloc(1_000));
  assert.is(answer.queued(), 2_000);
  one.thaw();
  stream.close(http2.constants.NGHTTP2_CANCEL);
});

test("whoever waits for a killed process has lost it", async () => {
  session.request({ ":path": "/watch" }).on("error", () => {});
  const { answer } = await within(20_000, "the request", heard.promise);
  const gone = new Promise<void>((resolve) => answer.onGone(resolve));
  await one.kill();
  await within(20_000, "its loss", gone);
});

test("started again it has its port, and where somebody else has that it is a failure", async () => {
  const { port } = one;
  assert.is(await within(10_000, "a second start", one.start()), undefined);
  assert.is(one.port, port);
  await one.kill();
  const other = net.createServer();
  await new Promise<void>((resolve) => void other.listen(port, "127.0.0.1", resolve));
  const failed = await within(10_000, "a third start", one.start());
  assert.match(failed?.message ?? "", "EADDRINUSE");
  other.close();
});

test.run();
