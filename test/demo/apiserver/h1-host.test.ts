import http from "node:http";
import type { AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Answer, Ask } from "../../../src/demo/apiserver/ask.ts";
import { createH1Host } from "../../../src/demo/apiserver/h1-host.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/apiserver/h1-host");

async function hosted(handle: (ask: Ask, answer: Answer) => void): Promise<[number, () => void]> {
  const host = createH1Host(handle);
  await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve));
  return [(host.address() as AddressInfo).port, () => host.close()];
}

test("a request is passed on whole, and its answer comes back", async () => {
  const asked: Ask[] = [];
  const [port, close] = await hosted((ask, answer) => {
    asked.push(ask);
    answer.head(201, [["content-type", "text/plain"]]);
    answer.write(Buffer.from("made"));
    answer.end();
  });
  const url = `http://127.0.0.1:${port}/a?b=c`;
  const reply = await within(
    5_000,
    "an answer",
    fetch(url, { method: "POST", body: "it", keepalive: false }),
  );
  assert.equal([reply.status, await reply.text()], [201, "made"]);
  const [ask] = asked;
  assert.equal([ask?.method, ask?.path, ask?.body.toString()], ["POST", "/a?b=c", "it"]);
  assert.ok(ask?.fields.some(([name, value]) => name === "content-length" && value === "2"));
  close();
});

test("an asker that leaves before the end is told, one that was answered is not", async () => {
  const gone = Promise.withResolvers<string>();
  const [port, close] = await hosted((ask, answer) => {
    answer.onGone(() => gone.resolve(ask.path));
    answer.head(200, []);
    if (ask.path === "/done") answer.end();
  });
  const get = (path: string): Promise<http.IncomingMessage> =>
    new Promise((resolve, reject) => {
      http.get({ port, path, host: "127.0.0.1" }, resolve).on("error", reject);
    });
  const done = await within(20_000, "an answer", get("/done"));
  done.resume();
  const open = await within(20_000, "a head", get("/open"));
  open.destroy();
  assert.is(await within(20_000, "its leaving", gone.promise), "/open");
  close();
});

test.run();
