import { suite } from "uvu";
import * as assert from "uvu/assert";
import { formOf } from "../../../demo/objects/form.ts";

const test = suite("demo/objects/form");

test("the first entry of Accept that can be served decides", () => {
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  for (const [accept, form] of [
    ["", "plain"],
    ["*/*", "plain"],
    ["application/json", "plain"],
    ["application/json;stream=watch", "plain"],
    ["application/vnd.kubernetes.protobuf,application/json", "plain"],
    [`${table},application/json`, "table"],
    ["application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1", "partial"],
    ["application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "plain"],
    ["application/vnd.kubernetes.protobuf", undefined],
    ["application/yaml", undefined],
    ["application/json;as=Other;g=meta.k8s.io", undefined],
  ] as const)
    assert.is(formOf(accept), form, accept);
});

test.run();
