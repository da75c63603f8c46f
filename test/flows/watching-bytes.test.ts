import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { bearer, PlayedPath } from "../support/path.ts";
import { lineOf, linesOf, ok, PlayedWatch } from "../support/watch-path.ts";

const test = suite("watch-session: what goes to the client");

// --- bookmarks that the client did not request (§6.5) ---

test("a bookmark that the client did not request is withheld, and no event before or after it is lost (row 9)", () => {
  const words = "+8a =9 ~10a =11 =11 -12a";
  const seen = [false, true].map((isAsked) => {
    const path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true });
    const query = `resourceVersion=7${isAsked ? "&allowWatchBookmarks=true" : ""}`;
    const watch = new PlayedWatch({ path, query });
    assert.is(watch.queryOf(watch.from), "resourceVersion=7&allowWatchBookmarks=true");
    for (const word of words.split(" ")) watch.serve(watch.from, word, word === "+8a" ? ok : []);
    return watch.ear.body;
  });
  assert.equal(seen, [linesOf("+8a ~10a -12a"), linesOf(words)]);
});

test("with one a minute a quiet watch goes on elsewhere from a version that is known there", () => {
  const path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "=500");
  watch.kill(watch.from);
  assert.is(watch.queryOf(watch.to), "resourceVersion=500&allowWatchBookmarks=true&timeoutSeconds=3600");
  watch.serve(watch.to, "=501 +502a");
  watch.has("+502a");
});

test("a Table is asked for without them: the first object of a stream has the columns for all (row 9)", () => {
  const fields = [
    bearer("t"),
    new Field("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
  ];
  const watch = new PlayedWatch({
    path: new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true }),
    fields,
  });
  assert.is(watch.queryOf(watch.from), "resourceVersion=7");
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  assert.is(watch.queryOf(watch.to), "resourceVersion=8&timeoutSeconds=3600");
});

// --- other bytes ---

test("a response that the proxy cannot decode is forwarded unchanged, and is reset instead of ended if its backend is lost (row 20)", () => {
  const watch = new PlayedWatch();
  watch.from.last.side?.sendHeaders(
    [new Field(":status", "200"), new Field("content-type", "application/cbor-seq")],
    false,
  );
  watch.from.last.say("\xd9\xd9\xf7half");
  watch.path.settle();
  watch.kill(watch.from);
  assert.is(watch.ear.resetCode, errorCode.INTERNAL_ERROR);
  assert.is(watch.to.asked.length, 0);
});

test("a watch response with a Content-Length is not continued at another backend (row 20)", () => {
  const watch = new PlayedWatch();
  const body = linesOf("+8a ~9a");
  watch.serve(watch.from, "", [...ok, new Field("content-length", String(body.length))]);
  watch.from.last.say(body.slice(0, -10));
  watch.path.settle();
  watch.kill(watch.from);
  assert.is(watch.ear.resetCode, errorCode.INTERNAL_ERROR);
  assert.is(watch.to.asked.length, 0);
});

test("a response whose bytes do not match its content type is forwarded unchanged, and reset if its backend is lost (row 20)", () => {
  const watch = new PlayedWatch();
  watch.from.last.side?.sendHeaders(ok, false);
  watch.from.last.say('{\n  "type": "ADDED"');
  watch.path.settle();
  assert.is(watch.ear.body, '{\n  "type": "ADDED"');
  watch.kill(watch.from);
  assert.is(watch.ear.resetCode, errorCode.INTERNAL_ERROR);
});

test("a watch of an aggregated API ends after a whole event, and is not resumed at another backend (row 20)", () => {
  const watch = new PlayedWatch({ resource: "/apis/metrics.k8s.io/v1beta1/pods" });
  watch.serve(watch.from, "+8a ~9a");
  watch.from.last.say(lineOf("~10a").slice(0, 30));
  watch.path.settle();
  watch.kill(watch.from);
  watch.has("+8a ~9a", "ended");
  assert.is(watch.to.asked.length, 0);
});

test("an ERROR is the client's own, and what follows it is the end", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a !410");
  watch.end(watch.from);
  watch.has("+8a !410", "ended");
  assert.is(watch.to.asked.length, 0);
});

test.run();
