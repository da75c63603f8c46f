import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { openapiRoutes, schemas } from "../../../../src/ops/admin/api/openapi.ts";
import { type SceneServer, serveScene } from "../../../support/api-server.ts";
import { startProxy } from "../../../support/proxy.ts";

const test = suite("ops/admin/api/openapi");

type Operation = {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >;
};
type Document = {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, { readonly get?: Operation; readonly post?: Operation }>>;
};

let scene: SceneServer;
let document: Document;

test.before(async () => {
  const proxy = await startProxy();
  const answer = await fetch(`http://${proxy.running.apiAddress}/openapi.json`);
  document = (await answer.json()) as Document;
  await proxy.stop();
  scene = await serveScene();
});
test.after(() => scene.stop());

test("it is OpenAPI 3.1, by the standard's own schema", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  assert.ok(valid, JSON.stringify(errors));
  assert.is(document.openapi, "3.1.0");
});

test("what is answered is what it says, field for field, on what a live path knows", async () => {
  // Does not validate "date-time" here: another test checks the times.
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  ajv.addSchema({ $id: "https://here/", components: { schemas } });
  const [watch] = await scene.items("watches");
  const ofWatch = `/api/v1/watches/${String(watch?.["auditId"])}`;
  const asked = ["/api/v1/", "/api/v1/stats", "/api/v1/history", "/api/v1/incidents/1", ofWatch];
  const lists = Object.keys(document.paths).filter((path) =>
    document.paths[path]?.get?.operationId.startsWith("list-"),
  );
  assert.is(lists.length, 8);
  for (const path of [...asked, ...lists]) {
    const described =
      document.paths[path === ofWatch ? "/api/v1/watches/{id}" : path.replace(/\/1$/, "/{id}")]?.get
        ?.responses["200"]?.content["application/json"];
    const text = JSON.stringify(described?.schema).replaceAll("#/components", "https://here/#/components");
    const validate = ajv.compile(JSON.parse(text));
    const body = await (await fetch(`http://${scene.address}${path}`)).json();
    assert.ok(validate(body), `${path}: ${ajv.errorsText(validate.errors)}`);
    if (lists.includes(path))
      assert.ok((body as { readonly items: readonly unknown[] }).items.length > 0, path);
  }
});

test("a field more, or one less, would be told", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const validate = ajv.compile(schemas["Certificate"] ?? {});
  const good = {
    purpose: "serving",
    name: "kube",
    notAfter: "2029-11-20T00:00:00.000Z",
    leftMs: 1,
    level: "ok",
    refused: "",
  };
  assert.ok(validate(good));
  assert.not.ok(validate({ ...good, more: 1 }));
  const { level: _level, ...less } = good;
  assert.not.ok(validate(less));
});

test("every parameter of a list is taken, and none that it does not name", async () => {
  for (const [path, { get }] of Object.entries(document.paths)) {
    if (get?.operationId.startsWith("list-") !== true) continue;
    const usual: Readonly<Record<string, string>> = { limit: "1", offset: "0", sort: "" };
    for (const { name, in: where, schema } of get.parameters ?? []) {
      assert.is(where, "query");
      const values = "enum" in schema && Array.isArray(schema.enum) ? schema.enum : [usual[name] ?? "x"];
      for (const value of values) {
        const answer = await fetch(`http://${scene.address}${path}?${name}=${value}`);
        assert.is(answer.status, 200, `${path}?${name}=${value}`);
        await answer.text();
      }
    }
    assert.is((await fetch(`http://${scene.address}${path}?unheard=x`)).status, 400);
  }
});

test("docs/admin-api.md has every path of it", () => {
  const page = readFileSync("docs/admin-api.md", "utf8");
  const ids = new Map([
    ["watches", "AUDIT-ID"],
    ["limits", "NUMBER"],
  ]);
  for (const [path, methods] of Object.entries(document.paths)) {
    const id = ids.get(path.split("/")[3] ?? "") ?? "ID";
    const written = path.replace("{name}", "NAME").replace("{id}", id);
    for (const method of Object.keys(methods))
      assert.match(page, `\`${method.toUpperCase()} ${written}\``, path);
  }
});

test("there is one document, at one path", () => {
  assert.is(openapiRoutes(new Map(), "1")("/openapi.yaml"), undefined);
});

test.run();
