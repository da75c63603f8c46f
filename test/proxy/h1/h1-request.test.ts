import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import {
  type H1Head,
  mayUpgrade,
  readHead,
  readTrailers,
  readUpgrade,
} from "../../../src/proxy/h1/h1-request.ts";
import { fastestMs } from "../../support/fastest.ts";
import { linesOf } from "../../support/h1.ts";

const test = suite("proxy/h1/h1-request");

function head(target: string, rawHeaders: readonly string[], version = "1.1"): H1Head {
  return { method: "GET", target, version, rawHeaders, scheme: "https", ownAuthority: "10.0.0.1:6443" };
}

function read(target: string, rawHeaders: readonly string[], version = "1.1"): string | string[] {
  const request = readHead(head(target, rawHeaders, version));
  return typeof request === "string" ? request : linesOf(request.head.fields);
}

test("repeated fields stay apart and in order", () => {
  assert.equal(
    read("/api", ["Host", "a", "Impersonate-Group", "x", "Cookie", "c", "impersonate-group", "y, z"]),
    [
      ":method GET",
      ":scheme https",
      ":authority a",
      ":path /api",
      "impersonate-group x",
      "cookie c",
      "impersonate-group y, z",
    ],
  );
});

test("fields for one hop, and those that Connection names, stay here", () => {
  const fields = [
    "Host",
    "a",
    "Connection",
    "close, X-Hop",
    "X-Hop",
    "1",
    "Keep-Alive",
    "5",
    "TE",
    "gzip",
    "X-End",
    "2",
  ];
  assert.equal(read("/", fields).slice(4), ["x-end 2"]);
});

for (const name of [
  "Authorization",
  "x-remote-user",
  "Impersonate-Group",
  "content-length",
  "host",
  "Cookie",
]) {
  test(`Connection cannot take away ${name} (A40)`, () => {
    assert.match(
      String(read("/", ["Host", "a", name, "v", "Connection", `close, ${name}`])),
      /^Connection names/,
    );
  });
}

test("the authority is the Host, or an absolute target's when both agree", () => {
  const authorityAndPath = (target: string, hosts: readonly string[], version = "1.1"): string =>
    String(
      read(
        target,
        hosts.flatMap((host) => ["Host", host]),
        version,
      ).slice(2),
    );
  assert.is(authorityAndPath("http://A:6443/x?y", ["a:6443"]), ":authority A:6443,:path /x?y");
  assert.is(authorityAndPath("https://a?y", ["a"]), ":authority a,:path /?y");
  assert.is(authorityAndPath("/", [], "1.0"), ":authority 10.0.0.1:6443,:path /");
  assert.is(read("/", []), "No Host");
  assert.is(read("/", ["Host", "a", "Host", "a"]), "More than one Host");
  assert.match(String(read("http://a/", ["Host", "b"])), /^Host differs/);
});

test("HTTP/1.1 and HTTP/1.0 are spoken, 0.9 and 2.0 are not", () => {
  for (const version of ["0.9", "2.0"]) assert.match(String(read("/", ["Host", "a"], version)), /version/);
});

test("the path is not touched", () => {
  for (const path of ["//a", "/api/../x", "/%2e%2e", "/a%2fb", "/?a=b?c", "/a;b"])
    assert.is(read(path, ["Host", "a"])[3], `:path ${path}`);
});

test("a body is announced by a length above zero or by chunked, and by nothing else", () => {
  const hasBody = (...fields: string[]): unknown => {
    const request = readHead(head("/", ["Host", "a", ...fields]));
    return typeof request === "string" ? request : request.hasBody;
  };
  assert.is(hasBody(), false);
  assert.is(hasBody("Content-Length", "0"), false);
  assert.is(hasBody("Content-Length", "1"), true);
  assert.is(hasBody("Transfer-Encoding", "Chunked"), true);
  for (const coding of ["gzip, chunked", "chunked, identity", "xchunked", "identity", "chunked\t"])
    assert.match(String(hasBody("Transfer-Encoding", coding)), /^Transfer-Encoding/);
  assert.match(
    String(hasBody("Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked")),
    /^Transfer-Enc/,
  );
  assert.match(String(hasBody("Transfer-Encoding", "chunked", "Content-Length", "1")), /^Both/);
  assert.match(String(read("/", ["Host", "a", "Transfer-Encoding", "chunked"], "1.0")), /in HTTP\/1.0$/);
});

test("as many fields as an apiserver takes, in linear time, and no more", () => {
  const many = Array.from({ length: limits.headerFields - 1 }, () => ["X-A", "b"]).flat();
  assert.is(read("/", ["Host", "a", ...many]).length, limits.headerFields - 1 + 4);
  assert.ok(fastestMs(() => read("/", ["Host", "a", ...many])) < 300);
  assert.match(String(read("/", ["Host", "a", "X-A", "b", ...many])), /^More than 16384/);
});

test("trailers with an identity or the message's framing are refused (A38)", () => {
  const trailers = readTrailers(["X-Sum", "1", "X-Sum", "2"]);
  assert.equal(typeof trailers === "string" ? trailers : linesOf(trailers), ["x-sum 1", "x-sum 2"]);
  for (const name of [
    "Authorization",
    "X-Remote-User",
    "Impersonate-User",
    "Content-Length",
    "Connection",
    "Host",
  ])
    assert.type(readTrailers([name, "v"]), "string", name);
  assert.type(readTrailers(Array.from({ length: 2 * limits.headerFields + 2 }, () => "a")), "string");
});

test("h2c is an Upgrade to ignore; anything else is meant", () => {
  assert.not.ok(mayUpgrade(head("/", ["Upgrade", "h2c", "Host", "a"])));
  const upgrade = readUpgrade(head("/", ["Host", "a", "upgrade", "WebSocket, h2c", "UPGRADE", "SPDY/3.1"]));
  assert.equal(typeof upgrade === "object" && upgrade.upgrades, ["WebSocket", "SPDY/3.1"]);
});

test("an Upgrade that no apiserver serves is ignored; exec, attach and port-forward are never plain requests", () => {
  const pod = "/api/v1/namespaces/a/pods/b";
  const sized = ["Content-Length", "2"];
  const may = (method: string, target: string, fields: readonly string[] = [], version = "1.1"): boolean =>
    mayUpgrade({ ...head(target, ["Upgrade", "websocket", ...fields], version), method });
  for (const method of ["GET", "POST", "PUT"])
    for (const subresource of ["exec", "attach", "portforward"])
      for (const fields of [[], sized])
        assert.ok(may(method, `${pod}/${subresource}?command=ls`, fields), `${method} ${subresource}`);
  for (const target of ["/api/v1/pods?watch=1", `${pod}/log`, `${pod}/proxy/x`, "/apis/x.io/v1/console"])
    assert.ok(may("GET", target), target);
  assert.ok(may("POST", `${pod}/proxy/`, ["Content-Length", "0"]));
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) assert.not.ok(may(method, pod, sized), method);
  for (const method of ["PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]) assert.not.ok(may(method, pod), method);
  assert.not.ok(may("POST", `${pod}/proxy/`, ["Transfer-Encoding", "chunked"]));
  assert.not.ok(may("GET", pod, [], "1.0"));
});

test.run();
