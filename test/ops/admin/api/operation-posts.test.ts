import { suite } from "uvu";
import * as assert from "uvu/assert";
import { operationPosts } from "../../../../src/ops/admin/api/operation-posts.ts";
import { Operations } from "../../../../src/proxy/cluster/operations.ts";
import { PlayedPath } from "../../../support/path.ts";
import { PlayedWatch } from "../../../support/watch-path.ts";

const test = suite("ops/admin/api/operation-posts");

async function posted(
  path: PlayedPath,
  at: string,
  body: Record<string, unknown> = {},
  isReadOnly = false,
): Promise<string> {
  const operations = new Operations({
    journal: path.journal,
    paths: () => [path],
    limits: path.operatorLimits,
    reload: undefined,
  });
  const post = operationPosts(operations, () => isReadOnly)(at);
  if (post === undefined) return "no such path";
  const { status, text } = await post({ by: "alice at 127.0.0.1", body });
  return `${status} ${String(text).trimEnd()}`;
}

test("a backend is drained and taken back at paths of its own", async () => {
  const path = new PlayedPath(["a", "10.0.0.1:6443"]);
  assert.is(
    await posted(path, "/api/v1/backends/10.0.0.1%3A6443/drain", { reason: "kernel update" }),
    '200 {"kind":"Operation","operation":"drain","target":"10.0.0.1:6443","outcome":"10.0.0.1:6443 is draining: no new requests; its watches move gradually"}',
  );
  assert.match(await posted(path, "/api/v1/backends/10.0.0.1:6443/undrain"), "is ready");
  const told = path.entries.find(({ kind }) => kind === "operation.done");
  assert.is(told?.kind === "operation.done" && told.reason, "kernel update");
});

test("what is not there is 404, what cannot be done now 409", async () => {
  const path = new PlayedPath(["a"]);
  assert.match(await posted(path, "/api/v1/backends/b/drain"), /^404 .*There is no backend/);
  assert.match(await posted(path, "/api/v1/backends/a/drain"), /^409 .*no other backend is ready/);
  assert.match(await posted(path, "/api/v1/watches/x/move"), /^404 /);
  assert.match(await posted(path, "/api/v1/reload"), /^409 .*No configuration file/);
});

test("a watch is moved by its audit id", async () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a =9");
  const id = path.exchanges.live[0]?.context.auditId ?? "";
  assert.match(await posted(path, `/api/v1/watches/${id}/move`), /^200 .*1 of 1/);
});

test("where the API is read-only all four are refused, and reported with the caller", async () => {
  const path = new PlayedPath(["a", "b"]);
  const paths = ["backends/a/drain", "backends/a/undrain", "watches/x/move", "reload"];
  for (const at of paths)
    assert.match(await posted(path, `/api/v1/${at}`, {}, true), /^403 .*admin\.readOnly: true/, at);
  const told = path.entries.filter(({ kind }) => kind === "operation.refused");
  assert.equal(
    told.map((entry) => entry.kind === "operation.refused" && `${entry.operation} by ${entry.by}`),
    ["drain", "undrain", "move", "reload"].map((operation) => `${operation} by alice at 127.0.0.1`),
  );
  assert.is(path.backends.views.find(({ name }) => name === "a")?.state, "ready");
});

test("there are no other paths", async () => {
  const path = new PlayedPath(["a"]);
  for (const at of [
    "/",
    "/api/v1/backends",
    "/api/v1/backends/a",
    "/api/v1/backends//drain",
    "/api/v1/backends/a/b/drain",
    "/api/v1/backends/%zz/drain",
    "/api/v2/reload",
    "/api/v1/reload/now",
  ])
    assert.is(await posted(path, at), "no such path", at);
});

test.run();
