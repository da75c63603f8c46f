import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { isUncommonAccept, watchRequestOf } from "../../../src/kube/watch-request.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, linesOf, ok, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("uncommon-parameters");

const shard = "shardSelector=shardRange(object.metadata.uid,'0x0','0x8000000000000000')&resourceVersion=7";
const drop = new Field("accept", "application/json;drop=metadata.managedFields, */*;q=0.1");

/** A live watch at `watch.from`. `versions`: what each backend reports; "from" is the one that serves the watch. */
function served(
  versions: Readonly<Record<string, string>>,
  options: { query?: string; accept?: Field } = {},
) {
  const names = Object.keys(versions);
  const known: Record<string, string> = { ...versions };
  const path = new PlayedPath(names, { compares: "watches", versions: known, isProbed: true });
  const { query = shard, accept } = options;
  const fields = [bearer("t"), ...(accept === undefined ? [] : [accept])];
  const watch = new PlayedWatch({ path, query, fields });
  const at = names.find((name) => path.backend(name) === watch.from) ?? "";
  const first = names[0] ?? "";
  // The proxy chooses the backend of the watch. The versions are those of "the serving one" and "the others".
  [known[first], known[at]] = [known[at] ?? "", known[first] ?? ""];
  watch.serve(watch.from, "~8a");
  return {
    path,
    watch,
    others: names.filter((name) => name !== at).map((name) => ({ name, version: known[name] })),
  };
}

test("a query parameter that not all apiservers know is found, however it is written; a common one is not", () => {
  const isUncommon = (query: string): boolean => watchRequestOf(`/api/v1/pods?watch=1${query}`).isUncommon;
  for (const query of ["&shardSelector=x", "&%73hardSelector=x", "&new", "&Limit=1", "&a=b&watch=0"])
    assert.ok(isUncommon(query), query);
  for (const query of [
    "",
    "&",
    "&labelSelector=a%3Db&fieldSelector=x&limit=500&continue=",
    "&a;b=c",
    "&%zz=1",
  ])
    assert.not(isUncommon(query), query);
  for (const accept of [
    "application/json;drop=metadata.managedFields",
    "*/*;q=0.1 , application/json ; Drop = x",
  ])
    assert.ok(isUncommonAccept(accept), accept);
  const tables =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;stream=watch;charset=utf-8;q=0.5";
  for (const accept of ["", "*/*", tables, "application/vnd.kubernetes.protobuf;stream=watch"])
    assert.not(isUncommonAccept(accept), accept);
});

test("a watch with such a parameter moves to a backend of the same minor version, and to no other", () => {
  for (const options of [{}, { query: "resourceVersion=7", accept: drop }]) {
    const { path, watch, others } = served({ a: "v1.38.1", b: "v1.36.4", c: "v1.38.0-beta.0" }, options);
    watch.kill(watch.from);
    watch.advance(100);
    const asked = others.filter(({ name }) => path.backend(name).asked.length > 0);
    assert.equal(
      asked.map(({ version }) => version),
      ["v1.38.0-beta.0"],
    );
    const to = path.backend(asked[0]?.name ?? "");
    watch.serve(to, "~9a");
    watch.has("~8a ~9a");
  }
});

test("a watch without one moves to a backend of any version", () => {
  const { path, watch, others } = served({ a: "v1.38.1", b: "v1.36.4" }, { query: "resourceVersion=7" });
  watch.kill(watch.from);
  watch.advance(100);
  assert.is(path.backend(others[0]?.name ?? "").asked.length, 1);
});

test("if no living backend has its version, a lost watch ends between two events at once", () => {
  for (const other of ["v1.36.4", ""]) {
    const { path, watch, others } = served({ a: "v1.38.1", b: other });
    watch.kill(watch.from);
    watch.advance(3000);
    watch.has("~8a", "ended");
    assert.is(path.backend(others[0]?.name ?? "").asked.length, 0);
    assert.equal([...path.migrations.ends], [["no_backend", 1]]);
  }
});

test("no second stream for any other reason goes to a backend of another version", () => {
  const { path, watch, others } = served({ a: "v1.38.1", b: "v1.36.4" });
  const other = path.backend(others[0]?.name ?? "");
  // Sentinels, a rebalance, a drain, a hedge.
  watch.advance(10_000);
  const [exchange] = path.exchanges.live;
  exchange?.context.client.rebind(others[0]?.name ?? "");
  if (exchange?.watch !== undefined) path.migrations.leave(exchange.watch, "rebalance");
  watch.advance(10_000);
  goAway(watch.from);
  watch.advance(10_000);
  blackHole(watch.from);
  watch.advance(1500);
  assert.is(other.asked.filter(({ request }) => request.path.includes("shardSelector")).length, 0);
  watch.has("~8a");
});

test("where no version is known, the watch stays at its backend, over another connection", () => {
  const { watch, path } = served({ a: "", b: "" });
  const { from } = watch;
  for (const { cable } of from.sessions) cable.cut("read ECONNRESET");
  path.settle();
  watch.advance(watchLimits.resumeMs / 2);
  assert.is(watch.to.asked.length, 0);
  from.last.side?.sendHeaders(ok, false);
  from.last.say(linesOf("~9a"));
  path.settle();
  watch.has("~8a ~9a");
});

test.run();
