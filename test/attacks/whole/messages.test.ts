import { suite } from "uvu";
import * as assert from "uvu/assert";
import { classify } from "../../../src/kube/request-info.ts";
import { sceneOf } from "../../support/attack.ts";
import { continued, data, type Fields, headers } from "../../support/h2-frames.ts";

const test = suite("attacks/whole/messages");

const scene = sceneOf(test);

/** Returns a valid request with these pseudo-header fields replaced. undefined omits a field. */
function request(over: Record<string, string | undefined>): Fields {
  const head = { ":method": "GET", ":scheme": "https", ":path": "/evil", ":authority": "a" };
  return Object.entries<string | undefined>({ ...head, ...over }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
}

const refused: Record<string, Fields> = {
  "A30: an empty path": request({ ":path": "" }),
  "A30: a relative path": request({ ":path": "evil" }),
  "A30: an absolute URI": request({ ":path": "https://b/evil" }),
  "A30: * with GET": request({ ":path": "*" }),
  "A30: a blank": request({ ":path": "/a b" }),
  "A30: a line feed": request({ ":path": "/a\r\nb" }),
  "A30: a fragment": request({ ":path": "/a#b" }),
  "A31: userinfo": request({ ":authority": "user@a" }),
  "A31: no authority at all": request({ ":authority": undefined }),
  "A32: a method with a blank": request({ ":method": "GET /x" }),
  "A32: an empty method": request({ ":method": "" }),
  "A32: CONNECT": request({ ":method": "CONNECT" }),
  "A32: CONNECT as it should be": [
    [":method", "CONNECT"],
    [":authority", "a:443"],
  ],
  "A11: no method": request({ ":method": undefined }),
  "A11: no scheme": request({ ":scheme": undefined }),
  "A11: no path": request({ ":path": undefined }),
};

for (const [what, fields] of Object.entries(refused)) {
  test(`${what} is refused, and the next request is served`, async () => {
    const before = scene.target.seen("/evil");
    const client = await scene.attacker();
    client.send(headers(1).of(fields, "end"), headers(3).get("/api"));
    await client.expect(/RST_STREAM 1 PROTOCOL_ERROR/);
    await client.expect(/HEADERS 3 :status=200/);
    assert.is(scene.target.seen("/evil"), before);
  });
}

test("A30: what the apiserver is to judge reaches it byte for byte", async () => {
  const client = await scene.attacker();
  const paths = [
    "//",
    "/api/../x",
    "/%2e%2e/x",
    "/a%2fb",
    "/%zz",
    "/?a=%00",
    '/"<>\\^`{|}',
    `/${"x".repeat(65_535)}`,
  ];
  for (const [at, path] of paths.entries()) {
    client.send(continued(headers(2 * at + 1).get(path), 16_000, 16_000, 16_000, 16_000));
    await client.expect(new RegExp(`^HEADERS ${2 * at + 1} :status=200`));
    assert.is(scene.target.seen(path), 1, path.slice(0, 40));
  }
});

test("A32: a lower-case method, TRACE, PRI and one of 10 KiB are the apiserver's to judge", async () => {
  const client = await scene.attacker();
  for (const [at, method] of ["get", "TRACE", "PRI", "X".repeat(10_240)].entries()) {
    client.send(headers(2 * at + 1).of(request({ ":method": method, ":path": `/method/${at}` }), "end"));
    await client.until("an end", () => client.count(new RegExp(`^(HEADERS|RST_STREAM) ${2 * at + 1} `)) > 0);
  }
});

const broken: Record<string, (id: number) => ReturnType<typeof data>[]> = {
  "A29: more body than content-length": (id) => [
    headers(id).post("/evil", ["content-length", "3"]),
    data(id, "12345", "end"),
  ],
  "A29: less body than content-length": (id) => [
    headers(id).post("/evil", ["content-length", "30"]),
    data(id, "12345", "end"),
  ],
  "A38: a pseudo-field in trailers": (id) => [
    headers(id).post("/evil"),
    data(id, "1"),
    headers(id).trailers([":path", "/other"]),
  ],
  "A38: content-length in trailers": (id) => [
    headers(id).post("/evil"),
    data(id, "1"),
    headers(id).trailers(["content-length", "1"]),
  ],
  "A38: authorization in trailers": (id) => [
    headers(id).post("/evil"),
    data(id, "1"),
    headers(id).trailers(["authorization", "Bearer x"]),
  ],
  "A38: an identity in trailers": (id) => [
    headers(id).post("/evil"),
    data(id, "1"),
    headers(id).trailers(["x-remote-user", "admin"]),
  ],
  "A27: a line feed in trailers": (id) => [
    headers(id).post("/evil"),
    data(id, "1"),
    headers(id).trailers(["x-a", "b\r\nc: d"]),
  ],
};

for (const [what, frames] of Object.entries(broken)) {
  test(`${what}: the request is cancelled, never completed`, async () => {
    const client = await scene.attacker();
    client.send(...frames(1), headers(3).get("/api"));
    await client.expect(/RST_STREAM 1 PROTOCOL_ERROR/);
    await client.expect(/HEADERS 3 :status=200/);
  });
}

test("A38's honest twin: ordinary trailers pass", async () => {
  const client = await scene.attacker();
  client.send(headers(1).post("/api"), data(1, "body"), headers(1).trailers(["x-checksum", "1"]));
  await client.expect(/HEADERS 1 :status=200/);
});

test("A59: the nastiest 64 KiB of path and query are read in milliseconds", () => {
  const nasty = ["/", "%2f", "%", "/%", "&", ";&", "watch&", "watch=%", "+", "a/", "%77atch=0&"].flatMap(
    (part) => [`/${part.repeat(65_536 / part.length)}`, `/api/v1/pods?${part.repeat(65_536 / part.length)}`],
  );
  for (const path of nasty) {
    const fastest = Math.min(
      ...Array.from({ length: 5 }, () => {
        const beganAt = performance.now();
        classify("GET", path);
        return performance.now() - beganAt;
      }),
    );
    assert.ok(fastest < 5, `${path.slice(0, 30)}: ${fastest} ms`);
  }
});

test.run();
