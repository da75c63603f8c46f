/**
 * A backend was found to have another etcd history, and then no client is left with which the proxy could check it; or
 * the other history was accepted.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { type Asked, bearer, PlayedPath } from "../support/path.ts";
import { linesOf, ok, PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/unchecked-history");

const json = new Field("content-type", "application/json");
const isList = ({ request }: Asked): boolean => request.path.includes("limit=1");
const listOf = (version: number): string =>
  `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"${version}"},"items":[]}`;

/** Lets the time pass while the backends answer lists with these versions, and all else with 200. */
function player(path: PlayedPath, told: Set<Asked>): (ms: number, versions: Record<string, number>) => void {
  const answer = (one: Asked, version: number): void => {
    if (told.has(one) || one.resetCode !== undefined) return;
    told.add(one);
    if (isList(one)) one.answer(200, listOf(version), [json]);
    else if (one.request.path.includes("watch=")) one.side?.sendHeaders(ok, false);
    else one.answer(200, "{}", [json]);
  };
  return (ms, versions) => {
    for (let left = ms; left > 0; left -= 250) {
      path.clock.advance(250);
      for (const [name, backend] of path.played)
        for (const one of backend.asked.slice(-20)) answer(one, versions[name] ?? 0);
      path.settle();
    }
  };
}

const stateOf = (path: PlayedPath, name: string): string | undefined => path.backends.stateOf(name);

test("a backend that no process can check any more: an incident after ten minutes, and no outage when the other one fails", () => {
  const path = new PlayedPath(["a", "b"], { compares: "all", down: ["b"], isProbed: true });
  const told = new Set<Asked>();
  const pass = player(path, told);
  pass(2000, { a: 900 });
  const watch = new PlayedWatch({ path, query: "resourceVersion=7&allowWatchBookmarks=true" });
  watch.serve(watch.from, "+900a");
  told.add(watch.from.last);
  pass(3000, { a: 900 });
  path.backend("b").isDown = false;
  pass(5000, { a: 900, b: 400 });
  assert.ok(path.backends.factsOf("b").isForked);
  watch.ear.stream.reset(8);
  const unchecked = (): number => path.entries.filter(({ kind }) => kind === "history.unchecked").length;
  pass(590_000, { a: 5000, b: 5000 });
  assert.is(unchecked(), 0);
  pass(20_000, { a: 5000, b: 5000 });
  assert.is(unchecked(), 1);
  pass(1_200_000, { a: 5000, b: 5000 });
  assert.equal([unchecked(), stateOf(path, "b")], [1, "dead"]);
  path.backend("a").kill();
  const get = path.client().ask("GET", "/api/v1/namespaces/d/pods/p", [bearer("t")]);
  pass(5000, { b: 5000 });
  assert.is(get.status, "200");
});

test("once another history was accepted, the stale-read guard demands no version of the old one", () => {
  const path = new PlayedPath(["a"], { compares: "all", staleReadGuard: "Enforce", isProbed: true });
  const told = new Set<Asked>();
  let version = 5000;
  const pass = (ms: number): void => {
    for (let left = ms; left > 0; left -= 250) {
      path.clock.advance(250);
      for (const one of path.backend("a").asked) {
        if (told.has(one) || one.resetCode !== undefined) continue;
        told.add(one);
        if (!one.request.path.includes("watch=")) one.answer(200, listOf(version), [json]);
        else {
          one.side?.sendHeaders(ok, false);
          one.say(linesOf("+5000a"));
        }
      }
      path.settle();
    }
  };
  pass(2000);
  const client = path.client();
  const fields = [bearer("t"), new Field("user-agent", "kubelet")];
  client.ask("GET", "/api/v1/configmaps?watch=true&resourceVersion=4000&allowWatchBookmarks=true", fields);
  pass(3000);
  const list = (): string => {
    client.ask("GET", "/api/v1/configmaps?resourceVersion=0", fields);
    pass(500);
    return path.backend("a").asked.findLast((one) => !isList(one))?.request.path ?? "";
  };
  assert.match(list(), "resourceVersion=5000&resourceVersionMatch=NotOlderThan");
  version = 400;
  pass(60_000);
  assert.not.match(list(), "5000");
});

test.run();
