import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { clientKey, userAgentOf } from "../../../src/proxy/context/client-key.ts";

const test = suite("client-key");
const agent = (value: string): Field[] => [new Field("user-agent", value)];

test("a client is its address and its User-Agent", () => {
  assert.is(clientKey({ address: "192.0.2.1" }, agent("kubelet/v1.36")), "192.0.2.1 kubelet/v1.36");
  assert.is(clientKey({ address: "192.0.2.1" }, []), "192.0.2.1 ");
});

test("a User-Agent is kept up to its limit", () => {
  assert.is(userAgentOf(agent("a".repeat(limits.userAgentChars + 1))).length, limits.userAgentChars);
});

test.run();
