import { type IncomingMessage, request } from "node:http";
import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../support/h1.ts";
import { startProxy, type TestBackend, type TestProxy } from "../support/proxy.ts";
import { linesOf } from "../support/watch-path.ts";

/** A chunked watch over HTTP/1.1, as Python and Java clients send it, while its backend dies (issue 5, build 6). */
const test = suite("flows/h1-watch");

type Asked = { readonly backend: TestBackend; readonly path: string; readonly stream: ServerHttp2Stream };

let proxy: TestProxy;
let asked: Asked[] = [];

test.before.each(async () => {
  asked = [];
  proxy = await startProxy({ backends: 2 });
  for (const backend of proxy.backends) {
    backend.server.removeAllListeners("stream");
    backend.server.on("stream", (stream, headers) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200, "content-type": "application/json" });
      asked.push({ backend, path: String(headers[":path"]), stream });
    });
  }
  await until(
    "ready backends",
    () => proxy.entries.filter(({ kind }) => kind === "upstream_connection.opened").length >= 4,
  );
});
test.after.each(async () => {
  for (const { stream } of asked) stream.destroy();
  await proxy.stop();
});

async function last(count: number): Promise<Asked> {
  await until(`asked ${count} times`, () => asked.length >= count);
  const one = asked[count - 1];
  if (one === undefined) throw new Error("No backend was asked");
  return one;
}

function watch(query: string): {
  answer: Promise<IncomingMessage>;
  text: () => string;
  isOver: () => boolean;
} {
  let text = "";
  let isOver = false;
  const asking = request({ port: proxy.plainPort, path: `/api/v1/pods?watch=1&${query}` });
  asking.on("error", () => {});
  const answer = new Promise<IncomingMessage>((resolve) => {
    asking.on("response", (message) => {
      message.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
      });
      message.on("end", () => {
        isOver = true;
      });
      resolve(message);
    });
  });
  asking.end();
  return { answer, text: () => text, isOver: () => isOver };
}

test("it goes on from its last event, in the same chunks", async () => {
  const { answer, text, isOver } = watch("resourceVersion=7");
  const first = await last(1);
  first.stream.write(linesOf("+8a ~9a"));
  first.stream.write(linesOf("~10a").slice(0, 40));
  assert.is((await answer).headers["transfer-encoding"], "chunked");
  await until("two events", () => text() === linesOf("+8a ~9a"));
  (first.stream.session as Http2Session).destroy();
  const second = await last(2);
  assert.match(second.path, /^\/api\/v1\/pods\?watch=1&resourceVersion=9&/);
  second.stream.write(linesOf("~10a -11a"));
  await until("the others", () => text() === linesOf("+8a ~9a ~10a -11a"));
  assert.not(isOver());
  second.stream.end();
});

test("one that cannot go on ends with its last chunk, as a server's own end", async () => {
  const { answer, text, isOver } = watch("resourceVersion=0");
  const first = await last(1);
  first.stream.write(linesOf("+8a +3b"));
  await answer;
  await until("two events", () => text() === linesOf("+8a +3b"));
  (first.stream.session as Http2Session).destroy();
  await until("the end", isOver);
  assert.is(text(), linesOf("+8a +3b"));
  assert.ok((await answer).complete, "a whole answer, not a truncated one");
});

test.run();
