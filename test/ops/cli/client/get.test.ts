import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { views } from "../../../../src/ops/cli/client/columns.ts";
import { get } from "../../../../src/ops/cli/client/get.ts";
import { kinds, singularOf } from "../../../../src/ops/cli/commands/commands.ts";
import { KeptScreen, type SceneServer, serveScene } from "../../../support/api-server.ts";

const test = suite("ops/cli/client/get");
let scene: SceneServer;

test.before(async () => {
  scene = await serveScene();
});

test.after(() => scene.stop());

async function got(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: scene.address });
  const code = await get(args, screen);
  return Object.assign(screen, { code });
}

test("every kind is a table of what the API lists", async () => {
  for (const kind of kinds) {
    const { out, code } = await got(kind);
    const lines = out.trimEnd().split("\n");
    assert.is(code, 0, kind);
    assert.is(lines.length, 1 + (await scene.items(kind)).length, kind);
    assert.match(lines[0] ?? "", views[kind].columns[0]?.head ?? "?");
  }
});

test("every column of every kind finds its field in what the API answers", async () => {
  for (const kind of kinds) {
    const rows = await scene.items(kind);
    assert.ok(rows.length > 0, kind);
    for (const { head, of } of views[kind].columns)
      for (const row of rows) assert.type(of(row), "string", `${kind} ${head}`);
  }
  const wide = await got("watches", "-o", "wide");
  const [heads = "", line = ""] = wide.out.split("\n");
  const cells = new Map(heads.split(/ {2,}/).map((head, index) => [head, line.split(/ {2,}/)[index]]));
  assert.is(cells.get("RESOURCE"), "/configmaps");
  assert.is(cells.get("STATE"), "✓ live");
  assert.is(cells.get("MOVES"), "1");
  assert.is(cells.get("POD"), "n/web-0");
  assert.not.match(wide.out, "planted-secret");
});

test("columns filter, a name is one of them, and -q looks everywhere", async () => {
  assert.match((await got("backends", "a", "--no-headers")).out, /^a /);
  assert.is((await got("backends", "--no-headers", "state=ready")).out.split("\n").length, 2);
  assert.match((await got("clients", "-q", "MANAGER", "--no-headers")).out, "system:serviceaccount:n:web");
  assert.match((await got("leases", "leader", "--no-headers")).out, "web-0_1");
  const sorted = await got("backends", "--sort=-name", "--no-headers");
  assert.match(sorted.out, /^b [^]*\na /);
});

test("-o yaml is the JSON as YAML, and -o name one name a line, as a NAME argument takes it", async () => {
  const { out } = await got("leases", "-o", "yaml");
  assert.equal(parse(out), JSON.parse((await got("leases", "-o", "json")).out));
  assert.match(out, /^kind: LeaseList\n/);
  assert.is((await got("backends", "-o", "name")).out, "a\nb\n");
  assert.equal(
    (await got("backend", ...(await got("backends", "-o", "name")).out.trim().split("\n"), "-o", "name")).out,
    "a\nb\n",
  );
  const none = await got("backends", "-q", "no-such", "-o", "name");
  assert.equal([none.out, none.complaints, none.code], ["", "No backends found\n", 0]);
});

test("a kind may be singular, and several names are looked up together", async () => {
  assert.equal(kinds.map(singularOf), [
    "backend",
    "watch",
    "client",
    "lease",
    "limit",
    "certificate",
    "incident",
    "replica",
  ]);
  for (const kind of kinds) {
    const key = String((await scene.items(kind))[0]?.[views[kind].key]);
    const { out, complaints, code } = await got(singularOf(kind), key, "absent", "--no-headers");
    assert.is(complaints, `${singularOf(kind)} "absent" not found\n`);
    assert.is(code, 1, kind);
    assert.ok(out.length > 0, kind);
    assert.is((await got(singularOf(kind), key)).code, 0, kind);
  }
  const both = await got("backend", "b", "a", "b", "--sort=name", "--no-headers");
  assert.match(both.out, /^a [^]*\nb /);
  assert.equal([both.code, both.complaints], [0, ""]);
  assert.is(JSON.parse((await got("backend", "a", "b", "c", "-o", "json")).out).matching, 2);
  assert.is((await got("backends", "name=a", "name=b", "--no-headers")).out, both.out);
});

test("with --limit, a name that may be on a later row is not reported as absent", async () => {
  const { code, complaints } = await got("backends", "a", "b", "--limit", "1");
  assert.equal([code, complaints], [0, "1 of 2: --limit shows more\n"]);
});

test("of several names that no row has, each is reported, and nothing is printed", async () => {
  const { code, out, complaints } = await got("watch", "x", "y", "-o", "json");
  assert.equal([code, out, complaints], [1, "", 'watch "x" not found\nwatch "y" not found\n']);
});

test("json is what the API returned; a table reports on stderr how many rows it omits", async () => {
  const { out, complaints } = await got("backends", "-o", "json", "--limit", "1");
  assert.equal(JSON.parse(out).items, (await scene.items("backends")).slice(0, 1));
  assert.is(complaints, "");
  assert.match((await got("backends", "--limit", "1")).complaints, "1 of 2: --limit shows more");
});

test("nothing there is 0, nothing of that name is 1, a wrong word is 2", async () => {
  const none = await got("watches", "state=hung");
  assert.equal([none.code, none.out, none.complaints], [0, "", "No watches found\n"]);
  assert.equal([(await got("backends", "c")).code, (await got("incidents", "77")).code], [1, 1]);
  assert.match((await got("backend", "c")).complaints, 'backend "c" not found');
  for (const wrong of [
    [],
    ["pods"],
    ["watches", "colour=red"],
    ["watches", "--limit", "0"],
    ["backends", "toString", "colour=red"],
    ["leases", "a".repeat(4096)],
  ])
    assert.is((await got(...wrong)).code, 2, wrong.join(" "));
  assert.match((await got("watches", "colour=red")).complaints, "columns are resource");
  const unserved = new KeptScreen({ WATCHKEEPER_ADMIN: "127.0.0.1:1" });
  assert.is(await get(["watches"], unserved), 3);
});

test.run();
