import { suite } from "uvu";
import * as assert from "uvu/assert";
import { documentAt } from "../../../demo/apiserver/discovery.ts";
import { isList, mapOf, textOf } from "../../../demo/objects/json.ts";
import { targetOf } from "../../../demo/objects/resources.ts";

const test = suite("demo/apiserver/discovery");

test("every resource that discovery names is served", () => {
  for (const path of ["/api/v1", "/apis/coordination.k8s.io/v1/"]) {
    const rows = documentAt(path)?.["resources"];
    if (!isList(rows) || rows.length === 0) throw new Error(`no resources at ${path}`);
    for (const row of rows) {
      const name = textOf(mapOf(row)["name"]);
      const segments = `${path}/${name}`.split("/").filter((segment) => segment !== "");
      assert.is(targetOf(segments)?.resource.plural, name);
    }
  }
});

test("groups lead to their versions, and OpenAPI to its documents", () => {
  assert.match(
    JSON.stringify(documentAt("/apis")),
    '"preferredVersion":{"groupVersion":"coordination.k8s.io/v1"',
  );
  const paths = Object.values(mapOf(documentAt("/openapi/v3")?.["paths"]));
  assert.is(paths.length, 2);
  for (const link of paths) {
    const url = textOf(mapOf(link)["serverRelativeURL"]);
    assert.match(JSON.stringify(documentAt(url)), "fieldValidation", url);
  }
});

test("what is no document is nothing", () => {
  for (const path of ["/openapi/v2", "/apis/apps", "/api/v1/configmaps"])
    assert.is(documentAt(path), undefined, path);
});

test.run();
