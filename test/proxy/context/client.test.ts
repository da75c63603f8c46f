import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client } from "../../../src/proxy/context/client.ts";

const test = suite("proxy/context/client");

test("a client starts unbound, with one forwarded-for field for all its requests", () => {
  const client = new Client({
    address: "10.0.0.9",
    port: 40_000,
    listener: "kube",
    alpn: "h2",
    isTls: true,
    isTrustedForwarder: false,
  });
  assert.is(client.backend, undefined);
  assert.equal([client.forwardedFor.name, client.forwardedFor.value], ["x-forwarded-for", "10.0.0.9"]);
});

test.run();
