import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clientOf } from "../../support/client.ts";

const test = suite("upstream/context/client");

test("a client starts unbound, with one forwarded-for field for all its requests", () => {
  const client = clientOf();
  assert.is(client.backend, undefined);
  assert.equal([client.forwardedFor.name, client.forwardedFor.value], ["x-forwarded-for", "10.0.0.9"]);
});

test.run();
