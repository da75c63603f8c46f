import { request } from "node:http";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import type { Posted } from "../../../../src/ops/admin/http/reply.ts";
import { type Admin, startApi } from "../../../../src/ops/admin/server/server.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/http/posting");
let api: Admin;
let posted: Posted[];
let told: Entry[];

test.before.each(async () => {
  posted = [];
  told = [];
  const journal = new Journal(wallClock);
  journal.subscribe((entry) => told.push(entry));
  const started = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal,
    routes: (path) =>
      path === "/read" ? () => ({ status: 200, type: "text/plain", text: "read" }) : undefined,
    posts: (path) =>
      path === "/do"
        ? (what) => {
            posted.push(what);
            return { status: 200, type: "text/plain", text: "done" };
          }
        : undefined,
  });
  if (started instanceof Failure) throw new Error(started.message);
  api = started;
});

test.after.each(() => api.stop());

type Sent = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string };
const own = { "content-type": "application/json", "x-watchkeeper-operator": "alice" };

function statusOf(path: string, { method = "POST", headers = own, body = "{}" }: Sent = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const port = Number(api.address.split(":").at(-1));
  const asked = request({ port, host: "127.0.0.1", path, method, headers, agent: false }, (response) => {
    let text = "";
    response.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    response.on("end", () => resolve(`${response.statusCode} ${response.headers.allow ?? ""}${text}`));
  });
  asked.on("error", reject);
  asked.end(body);
  return within(20_000, path, promise);
}

test("a client that names itself, in JSON, is served", async () => {
  assert.is(await statusOf("/do", { body: '{"reason":"because"}' }), "200 done");
  assert.is(
    await statusOf("/do", { headers: { ...own, "content-type": "application/json; charset=utf-8" } }),
    "200 done",
  );
  assert.is(await statusOf("/do", { headers: { ...own, origin: `http://${api.address}` } }), "200 done");
  const { by, body, headers } = posted[0] ?? {};
  assert.equal({ by, body }, { by: "alice at 127.0.0.1", body: { reason: "because" } });
  assert.is(headers?.["x-watchkeeper-operator"], "alice", "a request that is forwarded needs its fields");
  assert.is(posted.length, 3);
});

test("a page of another origin changes nothing, whatever it makes the browser send (A56)", async () => {
  const attacks: readonly Record<string, string>[] = [
    { ...own, origin: "http://evil.example" },
    { ...own, origin: "null" },
    { ...own, origin: "https://127.0.0.1:1" },
    { ...own, "sec-fetch-site": "cross-site" },
    { ...own, "sec-fetch-site": "same-site" },
    // Content types that an HTML form of another origin may send without a CORS preflight.
    { "content-type": "application/x-www-form-urlencoded" },
    { ...own, "content-type": "text/plain" },
    { ...own, "content-type": "" },
    { "content-type": "application/json" },
    { "content-type": "application/json", "x-watchkeeper-operator": "  " },
    { ...own, host: "evil.example" },
  ];
  for (const headers of attacks) {
    const status = await statusOf("/do", { headers });
    assert.match(status, /^(403|415|421) /, JSON.stringify(headers));
  }
  assert.equal(posted, []);
  const refused = told.filter(({ kind }) => kind === "operation.refused");
  assert.is(refused.length, attacks.length - 1, "and each is told, but for one that asked another host");
  for (const method of ["OPTIONS", "PUT", "GET", "HEAD"])
    assert.match(
      await statusOf("/do", { method, body: "" }),
      /^405 POST/,
      `${method}: no browser is given leave`,
    );
});

test("a body is small and an object, and nothing else is read of it", async () => {
  for (const body of ["", "[]", "7", "{", "null"])
    assert.match(await statusOf("/do", { body }), /^400 /, body);
  const long = JSON.stringify({ reason: "x".repeat(adminLimits.apiBodyBytes) });
  assert.match(await statusOf("/do", { body: long }), /^413 /);
  assert.equal(posted, []);
});

test("who asks is cut to its length", async () => {
  await statusOf("/do", { headers: { ...own, "x-watchkeeper-operator": "a".repeat(1000) } });
  assert.is(posted[0]?.by, `${"a".repeat(adminLimits.operatorChars)} at 127.0.0.1`);
});

test("what can only be read cannot be posted to, and a path that there is not is none", async () => {
  assert.match(await statusOf("/read"), /^405 GET, HEAD/);
  assert.match(await statusOf("/nothing"), /^404 /);
  assert.is(await statusOf("/read", { method: "GET", body: "" }), "200 read");
});

test.run();
