import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  type Acceptance,
  acceptanceOf,
  bookmarkedTarget,
  isInitialising,
  listTarget,
  type ResponseHead,
  replayTarget,
  resumeTarget,
} from "../../src/kube/resume-request.ts";
import { goParseQuery } from "../support/request-info.ts";

const test = suite("kube/resume-request");

const at42 = { version: "42", hasBookmarks: true, ageMs: 0, leftMs: 300_000 };

/** The target that the client sent, and the target that the proxy has to send to resume this watch. */
const targets: readonly (readonly [string, string])[] = [
  // client-go's reflector
  [
    "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=7&timeout=5m0s&timeoutSeconds=300&watch=true",
    "/api/v1/pods?timeout=5m0s&watch=true&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
  // A WatchList request.
  [
    "/apis/apps/v1/deployments?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true",
    "/apis/apps/v1/deployments?watch=true&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
  // kubectl get -w
  [
    "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx&limit=500&resourceVersion=7&watch=true",
    "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx&watch=true&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
  // Selectors and their percent-encoding stay as they are.
  [
    "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&&watch&labelSelector=d",
    "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&watch&labelSelector=d&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
  // All occurrences of resourceVersion are removed, however they are percent-encoded.
  [
    "/x?resourceVersion=1&resource%56ersion=2&watch=1&resourceVersion&continue=x&limit=",
    "/x?watch=1&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
  // Parameters that the apiserver ignores stay, and do no harm.
  [
    "/x?resourceVersion=1;a&watch=1&%zz=1&resourceversion=3",
    "/x?resourceVersion=1;a&watch=1&%zz=1&resourceversion=3&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
  // The deprecated path with /watch/.
  ["/api/v1/watch/pods", "/api/v1/watch/pods?resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300"],
  [
    "/api/v1/watch/pods?",
    "/api/v1/watch/pods?resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300",
  ],
];

test("the list of what a watch watches: one object, etcd's version or the cache's, its selectors as they are", () => {
  const target =
    "/api/v1/pods?allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dn&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300&watch=true";
  assert.is(listTarget(target), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=1");
  assert.is(
    listTarget(target, "1"),
    "/api/v1/pods?fieldSelector=spec.nodeName%3Dn&resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=1",
  );
  assert.is(
    listTarget("/apis/g/v1/namespaces/watch/watch?watch"),
    "/apis/g/v1/namespaces/watch/watch?limit=1",
  );
  for (const old of ["/api/v1/watch/pods", "/apis/g/v1/watch/namespaces/n/x/y?a=b", "//api/v1//watch/pods"])
    assert.is(listTarget(old), undefined);
});

test("a resumed request repeats the client's query byte for byte, except version, timeout and initial events (row 14)", () => {
  for (const [asked, resumed] of targets) assert.is(resumeTarget(asked, at42), resumed);
});

test("no bookmarks are requested that the client did not want", () => {
  const target = resumeTarget("/x?watch=1&allowWatchBookmarks=false", { ...at42, hasBookmarks: false });
  assert.is(target, "/x?watch=1&resourceVersion=42&timeoutSeconds=300");
});

test("a resumed watch ends at the client's timeout, or after an hour if the client set none (row 16)", () => {
  const seconds = (ageMs: number, leftMs: number | undefined): string =>
    /timeoutSeconds=(-?\d+)/.exec(resumeTarget("/x", { ...at42, ageMs, leftMs }))?.[1] ?? "";
  assert.equal([seconds(0, 5000), seconds(0, 4001), seconds(0, 3), seconds(0, -7)], ["5", "5", "1", "1"]);
  assert.equal([seconds(0, undefined), seconds(3_599_500, undefined)], ["3600", "1"]);
  assert.equal([seconds(1000, undefined), seconds(9_000_000, undefined)], ["3599", "1"]);
});

test("a replay is the client's own request, with what is left of its time", () => {
  assert.is(
    replayTarget("/x?watch=1&sendInitialEvents=true", undefined),
    "/x?watch=1&sendInitialEvents=true",
  );
  assert.is(replayTarget("/x?timeoutSeconds=300&watch=1", 1200), "/x?watch=1&timeoutSeconds=2");
});

test("bookmarks are added to what the client asked for, and nothing else changes", () => {
  assert.is(
    bookmarkedTarget("/x?allowWatchBookmarks=false&watch=1&resourceVersion=7"),
    "/x?watch=1&resourceVersion=7&allowWatchBookmarks=true",
  );
});

test("read by the apiserver, a random resumed query differs in the proxy's own parameters only", () => {
  const ours = ["resourceVersion", "timeoutSeconds", "allowWatchBookmarks"];
  const gone = ["resourceVersionMatch", "sendInitialEvents", "limit", "continue"];
  const key = fc.constantFrom("watch", "labelSelector", "%6cimit", "a;b", "%", ...ours, ...gone);
  const pair = fc
    .tuple(key, fc.constantFrom("", "=", "=1", "=true", "=%zz", "=a%3Db", "=;"))
    .map(([k, v]) => k + v);
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 12 }), (pairs) => {
      const query = pairs.join("&");
      const before = goParseQuery(query);
      const after = goParseQuery(resumeTarget(`/x?${query}`, at42).slice(3));
      assert.equal(
        ours.map((name) => after.get(name)),
        [["42"], ["300"], ["true"]],
      );
      for (const name of gone) assert.is(after.get(name), undefined, query);
      const rest = (values: ReadonlyMap<string, readonly string[]>) =>
        [...values].filter(([name]) => !ours.includes(name) && !gone.includes(name));
      assert.equal(rest(after), rest(before), query);
    }),
    { numRuns: 5000 },
  );
});

const json = { contentType: "application/json", contentEncoding: "", retryAfterMs: undefined };
const word = (acceptance: Acceptance): string =>
  acceptance.kind === "elsewhere" && acceptance.inMs > 0
    ? `elsewhere, or in ${acceptance.inMs}`
    : acceptance.kind;

test("an answer is taken when it is 200 in the same form; the client itself is to see that it may not ask", () => {
  const answers: readonly (readonly [Partial<ResponseHead> & { status: number }, string])[] = [
    [{ status: 200 }, "go"],
    [{ status: 200, contentType: "application/vnd.kubernetes.protobuf;stream=watch" }, "elsewhere"],
    [{ status: 200, contentEncoding: "gzip" }, "elsewhere"],
    [{ status: 401 }, "end"],
    [{ status: 403 }, "end"],
    [{ status: 410 }, "elsewhere"],
    [{ status: 500 }, "elsewhere"],
    [{ status: 504 }, "elsewhere"],
    [{ status: 429, retryAfterMs: 1000 }, "elsewhere, or in 1000"],
    [{ status: 503, retryAfterMs: 5000 }, "elsewhere, or in 5000"],
  ];
  for (const [answer, expected] of answers)
    assert.is(word(acceptanceOf({ ...json, ...answer }, json.contentType)), expected, JSON.stringify(answer));
});

test("a 429 of storage that fills its cache is told from one of the filters before it", () => {
  const answer = { status: 429, contentEncoding: "", retryAfterMs: 1000 };
  assert.ok(isInitialising({ ...answer, contentType: "application/json" }));
  assert.ok(isInitialising({ ...answer, contentType: "application/vnd.kubernetes.protobuf" }));
  assert.not(isInitialising({ ...answer, contentType: "text/plain; charset=utf-8" }));
  assert.not(isInitialising({ ...answer, contentType: "" }));
  assert.not(isInitialising({ ...answer, status: 503, contentType: "application/json" }));
});

test.run();
