/** Tests limits on the whole data path: what clients receive, and what the proxy reports to operators. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { EntryOf } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { operatorLimits } from "../../../src/proxy/limits/limits.ts";
import { jwt } from "../../support/jwt.ts";
import { bearer, type Ear, type PlayedClient, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/limits/request-limits");
const alice = { by: "alice at 127.0.0.1", reason: "flood" };
const minute = 60_000;

function tokenOf(user: string): Field {
  return bearer(jwt({ sub: user }));
}

/** Sends a request with this token, and lets a backend accept it. */
function proved(path: PlayedPath, client: PlayedClient, token: Field): void {
  client.ask("GET", "/api", [token]);
  path.settle();
  answerAll(path);
}

function answerAll(path: PlayedPath, status = 200): void {
  for (const backend of path.played.values())
    for (const asked of backend.asked)
      if (asked.isEnded && asked.heads.length === 0 && !answered.has(asked)) {
        answered.add(asked);
        asked.answer(status, "{}");
      }
  path.settle();
}
const answered = new WeakSet<object>();

function refusals(path: PlayedPath): readonly EntryOf<"limit.refused">[] {
  return path.entries.filter((entry) => entry.kind === "limit.refused");
}

const retryAfter = (ear: Ear): string | undefined =>
  ear.heads.at(-1)?.find(({ name }) => name === "retry-after")?.value;

test("a request above a limit gets 429 with Retry-After and a Status, and no backend sees it", () => {
  const path = new PlayedPath(["a"], { limits: [{ name: "few", verbs: ["list"], rate: "1/s" }] });
  const client = path.client();
  const first = client.ask("GET", "/api/v1/secrets", [tokenOf("jane")]);
  const second = client.ask("GET", "/api/v1/secrets", [tokenOf("jane")]);
  path.settle();
  assert.is(path.backend("a").asked.length, 1);
  assert.equal([second.status, retryAfter(second)], ["429", "1"]);
  const status = JSON.parse(second.body) as { readonly message: string; readonly reason: string };
  assert.is(status.reason, "TooManyRequests");
  assert.match(status.message, "Too many requests, please try again later: limit few allows verb=list, 1/s");
  answerAll(path);
  assert.is(first.status, "200");
  path.clock.advance(1000);
  client.ask("GET", "/api/v1/secrets", [tokenOf("jane")]);
  path.settle();
  assert.is(path.backend("a").asked.length, 2, "a second later");
});

test("the limit of a user counts only requests whose token a backend has accepted", () => {
  const path = new PlayedPath(["a"], { limits: [{ name: "jane", users: ["jane"], rate: "1/h" }] });
  const forger = path.client();
  for (let count = 0; count < 5; count += 1) {
    const forged = forger.ask("GET", "/api/v1/pods", [tokenOf("jane")]);
    path.settle();
    answerAll(path, 401);
    assert.is(forged.status, "401");
  }
  const client = path.client();
  proved(path, client, tokenOf("jane"));
  const real = client.ask("GET", "/api/v1/pods", [tokenOf("jane")]);
  path.settle();
  answerAll(path);
  assert.is(real.status, "200", "the invented tokens have used up nothing");
  const next = client.ask("GET", "/api/v1/pods", [tokenOf("jane")]);
  path.settle();
  assert.is(next.status, "429");
});

test("concurrent requests are counted until they end, whatever ends them", () => {
  const path = new PlayedPath(["a"], { limits: [{ name: "two", verbs: ["get"], maxInFlight: 2 }] });
  const client = path.client();
  const ask = (): ReturnType<PlayedClient["ask"]> => {
    const ear = client.ask("GET", "/api/v1/namespaces/n/pods/p", [tokenOf("jane")]);
    path.settle();
    return ear;
  };
  const [one, two, three] = [ask(), ask(), ask()];
  assert.is(three.status, "429");
  one.stream.reset(errorCode.CANCEL);
  path.settle();
  const four = ask();
  assert.is(four.status, "", "the client gave up the first one");
  answerAll(path);
  assert.equal([two.status, four.status], ["200", "200"]);
  assert.equal(
    path.limits.own.map(({ inFlight }) => inFlight),
    [0],
  );
});

test("a watch counts until its response begins", () => {
  const path = new PlayedPath(["a"], { limits: [{ name: "one", verbs: ["watch"], maxInFlight: 1 }] });
  const client = path.client();
  const ask = (): Ear => {
    const ear = client.ask("GET", "/api/v1/pods?watch=1&resourceVersion=7", [tokenOf("jane")]);
    path.settle();
    return ear;
  };
  ask();
  assert.is(ask().status, "429");
  path
    .backend("a")
    .last.side?.sendHeaders(
      [new Field(":status", "200"), new Field("content-type", "application/json")],
      false,
    );
  path.settle();
  assert.is(ask().status, "");
});

test("an operator's limit applies at once to open connections, ends at its time, and is reported", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  proved(path, client, tokenOf("jane"));
  assert.ok(path.limits.isEmpty);
  path.operatorLimits.add({ users: ["jane"], verbs: ["list"], rate: "1/h" }, alice, minute);
  const ask = (): string => {
    const ear = client.ask("GET", "/api/v1/secrets", [tokenOf("jane")]);
    path.settle();
    return ear.status;
  };
  assert.equal([ask(), ask(), ask()], ["", "429", "429"]);
  path.clock.advance(minute - path.clock.now() + 10_000);
  assert.ok(path.limits.isEmpty, "its time is over");
  assert.is(ask(), "");
  const told = path.entries.filter(({ kind }) => kind.startsWith("limit."));
  assert.equal(
    told.map((entry) => [entry.kind, "limit" in entry && entry.limit]),
    [
      ["limit.added", "limit 1"],
      ["limit.refused", "limit 1"],
      ["limit.removed", "limit 1"],
    ],
  );
  assert.equal([...path.limits.refused], [["operator", 2]]);
});

test("a flood above a limit is journaled every ten seconds, not for each request", () => {
  const path = new PlayedPath(["a"], { limits: [{ name: "one", verbs: ["list"], rate: "1/h" }] });
  const client = path.client();
  for (let second = 0; second < 30; second += 1) {
    for (let count = 0; count < 50; count += 1) client.ask("GET", "/api/v1/pods", [tokenOf("jane")]);
    path.clock.advance(1000);
  }
  const all = refusals(path);
  assert.equal(
    all.map(({ refused }) => refused),
    [1, 500, 1000],
  );
  assert.equal([all[0]?.user, all[0]?.origin], ["jane", "config"]);
  assert.equal(
    path.entries.filter(({ kind }) => kind === "request.failed"),
    [],
  );
});

test("the limits of operators are bounded, and an invalid one is refused with its reason", () => {
  const { operatorLimits: operators } = new PlayedPath(["a"]);
  const refused = (wanted: object): string => {
    const outcome = operators.add(wanted, alice, minute);
    return "message" in outcome ? outcome.message : "added";
  };
  assert.match(refused({ rate: "1/s" }), "matches all requests: it needs at least one of users");
  assert.match(refused({ users: ["a"] }), 'needs a "rate" or "maxInFlight"');
  assert.match(refused({ users: ["a"], rate: "fast" }), 'rate: must be a rate such as "10/s"');
  assert.match(refused({ users: ["a"], rate: "1/s", colour: 1 }), 'unknown field "colour"');
  assert.match(refused({ sourceCIDRs: ["10.0.0.0"], rate: "1/s" }), "must be a network");
  for (let count = 0; count < operatorLimits.limits; count += 1)
    assert.is(refused({ users: [`u${count}`], rate: "1/s" }), "added");
  assert.match(refused({ users: ["one-more"], rate: "1/s" }), "32 limits are in force");
});

const everything: readonly object[] = [
  {},
  { userAgents: ["*"] },
  { users: ["*"] },
  { users: ["jane", "*"] },
  { users: ["*"], userAgents: ["*"] },
  { groups: ["*"] },
  { groups: ["system:authenticated"] },
  { groups: ["system:*"] },
  { groups: ["s*"], users: ["*"], userAgents: ["*"] },
  { sourceCIDRs: ["0.0.0.0/0"] },
  { sourceCIDRs: ["::/0"] },
  { sourceCIDRs: ["0.0.0.0/1", "128.0.0.0/1"] },
  { sourceCIDRs: ["::ffff:0:0/96"] },
  { verbs: ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"] },
  { users: ["*"], groups: ["*"], userAgents: ["*"], sourceCIDRs: ["::/0", "0.0.0.0/0"] },
];

test("a limit that excludes no request needs all: true, in every spelling", () => {
  for (const match of everything) {
    const { operatorLimits: operators } = new PlayedPath(["a"]);
    const outcome = operators.add({ ...match, rate: "1/h" }, alice, minute);
    assert.match(
      "message" in outcome ? outcome.message : "added",
      "matches all requests",
      JSON.stringify(match),
    );
    assert.not.ok("message" in operators.add({ ...match, all: true, rate: "1/h" }, alice, minute));
  }
  for (const match of [
    { users: ["jane"] },
    { userAgents: ["kube*"] },
    { sourceCIDRs: ["10.0.0.0/8"] },
    { verbs: ["list"] },
  ]) {
    const { operatorLimits: operators } = new PlayedPath(["a"]);
    assert.not.ok("message" in operators.add({ ...match, userAgents: ["k*"], rate: "1/h" }, alice, minute));
    const outcome = operators.add({ ...match, all: true, rate: "1/h" }, alice, minute);
    assert.match("message" in outcome ? outcome.message : "added", "matches only some requests");
  }
});

test("under a limit of all requests at 1/h, leases are created and reviews asked, and the operator acts", () => {
  const path = new PlayedPath(["a"]);
  path.operatorLimits.add({ userAgents: ["*"], all: true, rate: "1/h" }, alice, minute);
  const client = path.client();
  const statusOf = (method: string, target: string, user: string): string | undefined => {
    const ear = client.ask(method, target, [tokenOf(user)]);
    path.settle();
    answerAll(path);
    return ear.status;
  };
  assert.is(statusOf("GET", "/api/v1/pods", "jane"), "200", "the one request of the hour");
  assert.is(statusOf("GET", "/api/v1/pods", "jane"), "429");
  assert.is(statusOf("POST", "/apis/coordination.k8s.io/v1/namespaces/n/leases", "jane"), "200");
  assert.is(statusOf("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "jane"), "200");
  assert.is(statusOf("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "jane"), "200");
  assert.is(statusOf("GET", "/apis/coordination.k8s.io/v1/leases", "alice"), "200", "proves her token");
  assert.is(statusOf("GET", "/api/v1/pods", "alice"), "200", "the operator");
});

test("a successor has the limits with their numbers, ends and counts, and changes nothing meanwhile", () => {
  const path = new PlayedPath(["a"]);
  const { operatorLimits: operators } = path;
  operators.add({ users: ["jane"], rate: "1/h" }, alice, minute);
  operators.add({ userAgents: ["argocd*"], maxInFlight: 5 }, alice, 2 * minute);
  operators.remove("1", "bob");
  path.clock.advance(minute);
  const state = operators.freeze();
  const late = operators.add({ users: ["x"], rate: "1/s" }, alice, minute);
  assert.match("message" in late ? late.message : "", "A successor is starting");
  const next = new PlayedPath(["a"]);
  next.clock.advance(minute);
  next.operatorLimits.restore(state);
  assert.equal(next.operatorLimits.all.map(String), ["agent=argocd*, at most 5 at once"]);
  assert.equal(next.operatorLimits.all[0]?.origin?.by, alice.by);
  const added = next.operatorLimits.add({ users: ["x"], rate: "1/s" }, alice, minute);
  assert.is("name" in added && added.name, "3", "no number is used twice");
  next.clock.advance(minute + 1000);
  assert.equal(next.operatorLimits.all, [], "both are over");
  operators.thaw();
  assert.ok("name" in operators.add({ users: ["x"], rate: "1/s" }, alice, minute));
});

test("the replicas of the process share both the configured limits and those of operators", () => {
  const limits = [{ name: "ci", users: ["*"], rate: "30/s", scope: "AllReplicas" as const }];
  const path = new PlayedPath(["a"], { limits });
  path.operatorLimits.replicas.set(3);
  const added = path.operatorLimits.add({ users: ["x"], rate: "9/s", scope: "AllReplicas" }, alice, minute);
  assert.is("name" in added && added.sharers, 3);
  assert.is(path.limits.own[0]?.sharers, 3);
  path.operatorLimits.replicas.set(0);
  assert.is(path.limits.own[0]?.sharers, 1, "at least this process");
});

test("what a successor cannot read leaves it without limits", () => {
  const { operatorLimits: operators } = new PlayedPath(["a"]);
  for (const state of [
    "",
    "{",
    "[]",
    '{"limits":[{"written":{"name":"1","rate":"x"},"endsMs":9e15}]}',
    "null",
  ])
    operators.restore(state);
  assert.equal(operators.all, []);
});

test.run();
