import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { jsonReply, type Reply } from "../../../../src/ops/admin/http/reply.ts";
import { ReplyQueue } from "../../../../src/ops/admin/http/reply-queue.ts";

const test = suite("ops/admin/http/reply-queue");

/** Returns a route that answers a query only when `answer` is called, and the queries that it has begun to answer. */
function slowRoute(queue: ReplyQueue) {
  const begun: string[] = [];
  const waiting: ((reply: Reply) => void)[] = [];
  const route = queue.wrap((query) => {
    begun.push(query);
    return new Promise<Reply>((resolve) => waiting.push(resolve));
  });
  const answer = async (): Promise<void> => {
    waiting.shift()?.(jsonReply(200, {}));
    await new Promise(setImmediate);
  };
  return { route, begun, answer };
}

test("a second list begins when the first is over", async () => {
  const { route, begun, answer } = slowRoute(new ReplyQueue());
  const replies = [route("a"), route("b")];
  await new Promise(setImmediate);
  assert.equal(begun, ["a"]);
  await answer();
  assert.equal(begun, ["a", "b"]);
  await answer();
  assert.equal(
    (await Promise.all(replies)).map(({ status }) => status),
    [200, 200],
  );
});

test("a route that throws fails alone", async () => {
  const queue = new ReplyQueue();
  const bad = queue.wrap(() => {
    throw new Error("bad");
  });
  const outcome = Promise.resolve(bad("")).then(
    () => "answered",
    ({ message }: Error) => message,
  );
  const good = queue.wrap(() => jsonReply(200, {}));
  assert.is((await good("")).status, 200);
  assert.is(await outcome, "bad");
});

test("above the limit of waiting requests the next one gets 429, and none once the queue is shorter", async () => {
  const { route, begun, answer } = slowRoute(new ReplyQueue());
  const replies = Array.from({ length: adminLimits.queuedReplies }, (_, number) => route(String(number)));
  assert.is((await route("too many")).status, 429);
  await answer();
  const next = route("next");
  for (const _ of replies) await answer();
  assert.is((await next).status, 200);
  assert.is((await Promise.all(replies)).length, adminLimits.queuedReplies);
  assert.is(begun.at(-1), "next");
});

test.run();
