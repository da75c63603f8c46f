import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { listLimits } from "../../../src/kube/list-version.ts";
import { ProgressRequests } from "../../../src/watch/detectors/progress-requests.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { clientOf } from "../../support/client.ts";
import { bearer, type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { blackHole, json, listOf, ok, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch/detectors/progress-requests");

/** A quiet watch at one of two backends. The other backend has come back with an empty event history. */
class Quiet extends PlayedWatch {
  constructor(resource = "/api/v1/configmaps") {
    super({ path: new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true }), resource });
    this.serve(this.from);
    this.advance(100);
  }

  returned(): void {
    this.path.refresher.returned(this.to === this.path.backend("a") ? "a" : "b");
    this.advance(20);
  }

  /** Paths of the requests that the watch's backend received after its first `count` requests. */
  asked(count: number): string[] {
    return this.from.asked.slice(count).map(({ request }) => request.path);
  }

  /** Opens a watch of another client at the same backend. */
  other(token: string, resource: string): void {
    const client = this.path.client();
    const before = this.from.asked.length;
    for (let tries = 0; tries < 20 && this.from.asked.length === before; tries += 1) {
      client.ask("GET", `${resource}?watch=true&resourceVersion=7`, [bearer(token)]);
      this.path.settle();
      if (this.to.asked.length > 0) throw new Error("It went to the other backend");
    }
    this.serve(this.from);
  }
}

const tokenOf = (backend: PlayedBackend): string | undefined =>
  backend.last.request.fields.find(({ name }) => name === "authorization")?.value;

test("one list for each resource, whatever the number of its watches; their answers come first", () => {
  const quiet = new Quiet();
  for (const resource of ["configmaps", "configmaps", "pods"])
    quiet.client.ask("GET", `/api/v1/${resource}?watch=true&resourceVersion=7&labelSelector=a`, [
      bearer("t"),
    ]);
  quiet.path.settle();
  for (const asked of quiet.from.asked.slice(1)) asked.side?.sendHeaders(ok, false);
  quiet.path.settle();
  quiet.returned();
  const lists = quiet.asked(4).toSorted();
  assert.is(lists.length, 2);
  assert.match(lists[0] ?? "", /^\/api\/v1\/configmaps\?(labelSelector=a&)?limit=1$/);
  assert.is(lists[1], "/api/v1/pods?labelSelector=a&limit=1");
  for (const asked of quiet.from.asked.slice(4)) asked.answer(200, listOf("20"), [json]);
  quiet.path.settle();
  quiet.advance(100);
  assert.is(quiet.asked(6).length, 4);
  assert.equal(quiet.path.refresher.progressRequests, { answered: 2, refused: 0, unanswered: 0 });
  assert.is(quiet.path.exchanges.size, 4, "none of it is a client's request");
});

test("a watch that has come to etcd's version needs no bookmark", () => {
  const quiet = new Quiet();
  quiet.returned();
  quiet.list(quiet.from, "7");
  assert.is(quiet.path.migrations.refreshes, 0);
});

test("a bookmark that came since, from before etcd's version, proves nothing", () => {
  const quiet = new Quiet();
  quiet.path.refresher.returned(quiet.to === quiet.path.backend("a") ? "a" : "b");
  quiet.say(quiet.from, "=8");
  quiet.advance(20);
  quiet.list(quiet.from, "20");
  assert.is(quiet.path.migrations.refreshes, 1);
  quiet.serve(quiet.from, "=20");
  quiet.kill(quiet.from);
  assert.match(quiet.queryOf(quiet.to), "resourceVersion=20&");
});

test("a client that may not list: another's is tried, and the watches are refreshed all the same", () => {
  const quiet = new Quiet();
  quiet.path.backend(quiet.to === quiet.path.backend("a") ? "a" : "b").isDown = true;
  quiet.other("u", "/api/v1/configmaps");
  quiet.returned();
  const first = tokenOf(quiet.from);
  quiet.list(quiet.from, "");
  assert.is.not(tokenOf(quiet.from), first, "the other's");
  assert.match(quiet.from.last.request.path, /limit=1$/);
  quiet.list(quiet.from, "");
  quiet.advance(100);
  assert.is(quiet.path.migrations.refreshes, 2);
  assert.equal(quiet.path.refresher.progressRequests, { answered: 0, refused: 2, unanswered: 0 });
  quiet.advance(limits.progressCheckMs + watchLimits.progressAgainMs);
  assert.equal(quiet.entries("cache.progress_delayed"), [], "nothing is known of etcd's version");
});

test("clients that may not list are tried anew each time that a backend comes back", () => {
  const quiet = new Quiet();
  quiet.path.backend(quiet.to === quiet.path.backend("a") ? "a" : "b").isDown = true;
  quiet.other("u", "/api/v1/configmaps");
  for (let time = 0; time < 4; time += 1) {
    quiet.returned();
    for (const _ of ["t", "u"]) quiet.list(quiet.from, "");
    quiet.advance(10_000);
  }
  assert.is(quiet.path.refresher.progressRequests.refused, 8);
});

test("a list that is not answered is waited for no longer than the apiserver waits for its cache", () => {
  const quiet = new Quiet();
  quiet.returned();
  assert.is(quiet.from.asked.length, 2);
  const list = quiet.from.last;
  quiet.advance(watchLimits.progressAnswerMs + 100);
  assert.is(quiet.path.migrations.refreshes, 1);
  assert.ok(list.resetCode !== undefined, "nothing is left of it at the backend");
  assert.is(quiet.path.refresher.progressRequests.unanswered, 1);
});

test("a backend that falls silent meanwhile is not waited for", () => {
  const quiet = new Quiet();
  quiet.returned();
  blackHole(quiet.from);
  quiet.advance(1500);
  assert.is(quiet.path.refresher.progressRequests.unanswered, 1);
});

test("the deprecated form of a watch has no list of the same path, and none is asked for", () => {
  const quiet = new Quiet("/api/v1/watch/configmaps");
  quiet.returned();
  assert.is(quiet.path.migrations.refreshes, 1);
  assert.match(quiet.from.last.request.path, "watch=true");
});

test("one a second at most for each backend and resource, however often others come back", () => {
  const quiet = new Quiet();
  for (let count = 0; count < 50; count += 1) {
    quiet.returned();
    const { last } = quiet.from;
    if (last.request.path.endsWith("limit=1") && last.status === "")
      last.answer(200, listOf(String(20 + count)), [json]);
    quiet.path.settle();
    quiet.advance(80);
  }
  const lists = quiet.asked(0).filter((path) => path.endsWith("limit=1")).length;
  assert.ok(lists >= 4 && lists <= 6, String(lists));
});

test("a body that goes on for ever is let go once its version is read", () => {
  const quiet = new Quiet();
  quiet.returned();
  const list = quiet.from.last;
  list.side?.sendHeaders(ok, false);
  list.say(`${listOf("20").slice(0, -2)}${" ".repeat(2 * listLimits.listHeadBytes)}`);
  quiet.path.settle();
  quiet.advance(20);
  assert.ok(list.resetCode !== undefined);
  assert.is(quiet.path.migrations.refreshes, 1);
});

/** A watch that was refreshed without receiving a bookmark, while etcd is at version 20. */
function unmoved(): Quiet {
  const quiet = new Quiet();
  quiet.returned();
  quiet.list(quiet.from, "20");
  quiet.serve(quiet.from);
  quiet.end(quiet.from);
  quiet.advance(limits.progressCheckMs);
  return quiet;
}

const look = "/api/v1/configmaps?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=1";

test("a cache that has not come to etcd's version in twelve seconds is not notified, which is told until it is", () => {
  const quiet = unmoved();
  assert.is(quiet.from.last.request.path, look);
  quiet.list(quiet.from, "7");
  const [entry, ...more] = quiet.entries("cache.progress_delayed");
  assert.equal(more, []);
  assert.equal([entry?.resource, entry?.version, entry?.etcdVersion], ["/configmaps", "7", "20"]);
  assert.ok((entry?.lateMs ?? 0) >= limits.progressCheckMs);
  quiet.advance(watchLimits.progressAgainMs);
  quiet.list(quiet.from, "7");
  assert.is(quiet.entries("cache.progress_delayed").length, 1, "once");
  quiet.advance(watchLimits.progressAgainMs);
  quiet.list(quiet.from, "25");
  assert.is(quiet.entries("cache.progress_restored")[0]?.version, "25");
  quiet.advance(100);
  assert.is(quiet.path.migrations.refreshes, 2, "and its watch is refreshed at last");
});

test("a cache that came to it a little later is no incident, and its watches are refreshed again", () => {
  const quiet = unmoved();
  quiet.list(quiet.from, "21");
  quiet.advance(100);
  assert.equal(quiet.entries("cache.progress_delayed"), []);
  assert.is(quiet.path.migrations.refreshes, 2);
  quiet.serve(quiet.from, "=21");
  quiet.advance(limits.progressCheckMs + watchLimits.progressAgainMs);
  assert.is(quiet.path.migrations.refreshes, 2);
});

test("a newer list gives etcd the same time again", () => {
  const quiet = new Quiet();
  quiet.returned();
  quiet.list(quiet.from, "20");
  quiet.serve(quiet.from, "=15");
  quiet.advance(limits.progressCheckMs - 1_000);
  quiet.returned();
  quiet.list(quiet.from, "40");
  quiet.serve(quiet.from, "=20");
  quiet.advance(limits.progressCheckMs - 1_000);
  assert.equal(
    quiet.asked(0).filter((path) => path.includes("NotOlderThan")),
    [],
  );
  quiet.advance(2_000);
  assert.is(quiet.from.last.request.path, look);
});

test("nor is one that the proxy may not list, or whose watch has gone; what was reported then is over", () => {
  const refused = unmoved();
  refused.list(refused.from, "");
  refused.advance(3 * watchLimits.progressAgainMs);
  assert.equal(refused.entries("cache.progress_delayed"), []);
  const gone = unmoved();
  gone.list(gone.from, "7");
  gone.ear.stream.reset(8);
  gone.path.settle();
  gone.advance(watchLimits.progressAgainMs);
  assert.is(gone.entries("cache.progress_restored").length, 1);
});

test("nor is one whose list took so long that the apiserver waited for it: it stands still, which others find", () => {
  const quiet = new Quiet();
  quiet.returned();
  quiet.advance(watchLimits.progressWaitMs + 500);
  quiet.list(quiet.from, "20");
  assert.is(quiet.path.migrations.refreshes, 1);
  quiet.serve(quiet.from);
  quiet.end(quiet.from);
  quiet.advance(limits.progressCheckMs + watchLimits.progressAgainMs);
  assert.is(quiet.path.refresher.progressRequests.answered, 1);
  assert.equal(quiet.entries("cache.progress_delayed"), []);
  assert.equal(
    quiet.asked(0).filter((path) => path.includes("NotOlderThan")),
    [],
  );
});

test("what is known of backends and resources has a limit", () => {
  const path = new PlayedPath(["a"]);
  const requests = new ProgressRequests(path, () => undefined);
  const client = clientOf();
  for (let count = 0; count < watchLimits.progressRecords + 10; count += 1) {
    const watch = { resource: `/r${count}`, clientRequest: { client }, listed: () => undefined };
    requests.versionFor({ watch: watch as never, since: 0 }, "a");
  }
  assert.is(requests.size, watchLimits.progressRecords);
});

test.run();
