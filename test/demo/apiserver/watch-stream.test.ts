import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver, watchQueueBytes } from "../../../demo/apiserver/apiserver.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { Store } from "../../../demo/objects/store.ts";
import { ask, eventsOf, type Heard } from "../../support/ask.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("demo/apiserver/watch-stream");
const configmaps = "/api/v1/namespaces/default/configmaps";
/** The version of a new cluster: its four namespaces have versions 2 to 5. */
const fresh = 5;

type Scene = {
  readonly clock: ManualClock;
  readonly watch: (query: string, path?: string) => Heard;
  readonly write: (name: string, labels?: Record<string, string>) => void;
  readonly remove: (name: string) => void;
};

function newScene(historyLimit?: number): Scene {
  const clock = manualClock();
  const store = newCluster(clock, new Store(historyLimit));
  const apiserver = new Apiserver({ store, clock, name: "one" });
  return {
    clock,
    watch: (query, path = configmaps) => ask(apiserver, `GET ${path}?watch=true&${query}`),
    write(name, labels = {}) {
      // Each write needs a new value, because a write that changes nothing makes no new version.
      const body = { metadata: { name, labels }, data: { at: String(store.revision) } };
      if (ask(apiserver, `PUT ${configmaps}/${name}`, { body }).status === 404)
        ask(apiserver, `POST ${configmaps}`, { body });
    },
    remove: (name) => void ask(apiserver, `DELETE ${configmaps}/${name}`),
  };
}

test("from a version: every later change, in order, the past and the present alike", () => {
  const { watch, write, remove } = newScene();
  write("a");
  write("a");
  const stream = watch("resourceVersion=6");
  write("b");
  remove("a");
  assert.equal(eventsOf(stream), ["MODIFIED a@7", "ADDED b@8", "DELETED a@9"]);
});

test("from the state: what is there in key order, then its end if bookmarks are allowed", () => {
  const { watch, write } = newScene();
  write("b");
  write("a");
  const bookmarked = watch("resourceVersion=0&allowWatchBookmarks=true");
  assert.equal(eventsOf(bookmarked), ["ADDED a@7", "ADDED b@6", "BOOKMARK @7"]);
  assert.match(bookmarked.text, '"annotations":{"k8s.io/initial-events-end":"true"}');
  assert.equal(eventsOf(watch("")), ["ADDED a@7", "ADDED b@6"]);
});

test("from now: nothing that was, everything that will be", () => {
  const { watch, write } = newScene();
  write("a");
  const stream = watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
  write("b");
  assert.equal(eventsOf(stream), ["ADDED b@7"]);
});

test("from a version still to come: accepted at once, and silent up to it", () => {
  const { watch, write } = newScene();
  const stream = watch("resourceVersion=7");
  assert.is(stream.status, 200);
  for (const name of ["a", "b", "c"]) write(name);
  assert.equal(eventsOf(stream), ["ADDED c@8"]);
});

test("from a version that is forgotten: 410 inside the stream, and its end", () => {
  const { watch, write } = newScene(4);
  for (let count = 0; count < 5; count += 1) write("a");
  const stream = watch("resourceVersion=1");
  assert.is(stream.status, 200);
  assert.match(
    stream.text,
    /^\{"type":"ERROR","object":\{"kind":"Status".*"reason":"Expired","code":410\}\}\n$/,
  );
  assert.ok(stream.ended);
});

test("an object that enters a selector is ADDED, one that leaves it is DELETED as it was, at the version of leaving", () => {
  const { watch, write } = newScene();
  const stream = watch(`resourceVersion=${fresh}&labelSelector=app=x`);
  write("a");
  write("a", { app: "x" });
  write("a", { app: "x" });
  write("a", { app: "y" });
  write("a", { app: "y" });
  assert.equal(eventsOf(stream), ["ADDED a@7", "MODIFIED a@8", "DELETED a@9"]);
  assert.match(stream.text.split("\n")[2] ?? "", '"app":"x"');
});

test("a watch keeps to its resource, its namespace and its field", () => {
  const { watch, write } = newScene();
  const other = watch(`resourceVersion=${fresh}`, "/api/v1/namespaces/kube-system/configmaps");
  const secrets = watch(`resourceVersion=${fresh}`, "/api/v1/secrets");
  const named = watch(`resourceVersion=${fresh}&fieldSelector=metadata.name=b`);
  const prefixed = watch(`resourceVersion=${fresh}`, "/api/v1/watch/namespaces/default/configmaps/b");
  write("a");
  write("b");
  assert.equal([other, secrets, named, prefixed].map(eventsOf), [[], [], ["ADDED b@7"], ["ADDED b@7"]]);
});

test("bookmarks come each minute once something has moved, and repeat", () => {
  const { clock, watch, write } = newScene();
  const stream = watch(`resourceVersion=${fresh}&allowWatchBookmarks=true`);
  const silent = watch(`resourceVersion=${fresh}`, "/api/v1/secrets");
  clock.advance(60_000);
  assert.equal(eventsOf(stream), []);
  write("a");
  clock.advance(120_000);
  assert.equal(eventsOf(stream), ["ADDED a@6", "BOOKMARK @6", "BOOKMARK @6"]);
  assert.equal(eventsOf(silent), []);
});

test("timeoutSeconds ends the stream exactly then, a bookmark two seconds before", () => {
  const { clock, watch, write } = newScene();
  const stream = watch(`resourceVersion=${fresh}&allowWatchBookmarks=true&timeoutSeconds=30`);
  write("a");
  clock.advance(29_999);
  assert.equal([eventsOf(stream), stream.ended], [["ADDED a@6", "BOOKMARK @6"], false]);
  clock.advance(1);
  assert.ok(stream.ended);
  write("a");
  clock.advance(600_000);
  assert.is(watch("timeoutSeconds=-1").ended, true);
});

test("without timeoutSeconds a watch lives for half an hour at least, an hour at most", () => {
  const { clock, watch } = newScene();
  const streams = [1, 2, 3, 4, 5].map(() => watch(""));
  clock.advance(1_799_999);
  assert.is(streams.filter(({ ended }) => ended).length, 0);
  clock.advance(1_800_001);
  assert.is(streams.filter(({ ended }) => ended).length, 5);
});

test("a watcher that does not read is ended between two events, not fed for ever", () => {
  const { watch, write } = newScene();
  const stream = watch(`resourceVersion=${fresh}`);
  stream.queued = watchQueueBytes + 1;
  write("a");
  write("b");
  assert.equal([eventsOf(stream), stream.ended], [["ADDED a@6"], true]);
});

test("a watcher that left is told nothing more", () => {
  const { clock, watch, write } = newScene();
  const stream = watch(`resourceVersion=${fresh}&allowWatchBookmarks=true`);
  stream.leave();
  write("a");
  clock.advance(3_600_000);
  assert.equal([eventsOf(stream), stream.ended], [[], false]);
});

test.run();
