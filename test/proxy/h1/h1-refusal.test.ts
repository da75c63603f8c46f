import { suite } from "uvu";
import * as assert from "uvu/assert";
import { plainHttpOnTls, refusal } from "../../../src/proxy/h1/h1-refusal.ts";

const test = suite("proxy/h1/h1-refusal");

test("a refusal is a whole answer with a Status that kubectl can show and that names the proxy, and ends its connection", () => {
  const [head = "", body = ""] = refusal(431, "Too long: 1 \u20ac").toString().split("\r\n\r\n");
  assert.match(head, /^HTTP\/1.1 431 Request Header Fields Too Large\r\n/);
  assert.match(head, `content-length: ${Buffer.byteLength(body)}`);
  assert.match(head, "connection: close");
  const status = JSON.parse(body) as Record<string, unknown>;
  assert.equal(
    [status["kind"], status["code"], status["message"]],
    ["Status", 431, "watchkeeper: Too long: 1 \u20ac"],
  );
});

test("plain HTTP on the TLS port gets an answer that names the mistake", () => {
  assert.match(plainHttpOnTls().toString(), /^HTTP\/1.1 400 .*use https:\/\//s);
});

test.run();
