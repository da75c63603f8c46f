import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { WrittenLimit } from "../../../config/schema/written.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { limitOf } from "../../../src/ops/config/limit.ts";
import { Limit, type LimitedCaller } from "../../../src/proxy/limits/limit.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/limits/limit");

function limitWith(written: Omit<WrittenLimit, "name">, clock = manualClock()): Limit {
  return new Limit(limitOf({ name: "one", ...written }), clock);
}

const jane: LimitedCaller = { user: "jane", groups: ["dev"], agent: "kubectl", address: "10.1.2.3" };

test("each list that is not empty must contain the caller, and a star ends a beginning", () => {
  const applies = (written: Omit<WrittenLimit, "name">): boolean => limitWith(written).appliesTo(jane);
  const fitting: Omit<WrittenLimit, "name">[] = [
    {},
    { users: ["john", "jane"] },
    { users: ["ja*"] },
    { users: ["*"] },
    { groups: ["dev"] },
    { userAgents: ["kube*"] },
    { sourceCIDRs: ["10.0.0.0/8"] },
    { users: ["jane"], groups: ["dev"], userAgents: ["kubectl"], sourceCIDRs: ["10.1.2.3/32"] },
  ];
  const others: Omit<WrittenLimit, "name">[] = [
    { users: ["jan"] },
    { users: ["janet*"] },
    { groups: ["ops"] },
    { userAgents: ["kubelet"] },
    { sourceCIDRs: ["10.2.0.0/16"] },
    { users: ["jane"], groups: ["ops"] },
  ];
  assert.equal(
    fitting.map(applies),
    fitting.map(() => true),
  );
  assert.equal(
    others.map(applies),
    others.map(() => false),
  );
});

test("a caller whose identity no one has verified is in no list of users or groups", () => {
  const stranger = { ...jane, user: undefined, groups: [] };
  assert.not.ok(limitWith({ users: ["*"] }).appliesTo(stranger));
  assert.not.ok(limitWith({ groups: ["*"] }).appliesTo(stranger));
  assert.ok(limitWith({ userAgents: ["kubectl"] }).appliesTo(stranger));
});

test("verbs and resources are those of the request, with and without the API group", () => {
  const counts = (written: Omit<WrittenLimit, "name">, path: string, method = "GET"): boolean =>
    limitWith(written).counts(classify(method, path));
  assert.ok(counts({ verbs: ["list"] }, "/api/v1/secrets"));
  assert.not.ok(counts({ verbs: ["list"] }, "/api/v1/secrets?watch=1"));
  assert.ok(counts({ resources: ["secrets"] }, "/api/v1/namespaces/n/secrets/one"));
  assert.ok(counts({ resources: ["deployments"] }, "/apis/apps/v1/deployments"));
  assert.ok(counts({ resources: ["deployments.apps"] }, "/apis/apps/v1/deployments"));
  assert.not.ok(counts({ resources: ["deployments.other"] }, "/apis/apps/v1/deployments"));
  assert.ok(counts({ resources: ["pods"] }, "/api/v1/namespaces/n/pods/p/log"));
  assert.not.ok(counts({ resources: ["secrets"] }, "/version"));
  assert.ok(counts({}, "/version"));
});

test("leases and reviews pass, unless the limit names their resource", () => {
  const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  const exempt = [
    ["GET", `${lease}/node-1`, "leases"],
    ["PUT", `${lease}/node-1`, "leases"],
    ["PATCH", `${lease}/node-1`, "leases.coordination.k8s.io"],
    ["POST", lease, "leases"],
    ["GET", `${lease}?watch=1`, "leases"],
    ["POST", "/apis/authentication.k8s.io/v1/tokenreviews", "tokenreviews"],
    ["POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "selfsubjectreviews"],
    ["POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "subjectaccessreviews"],
    ["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "selfsubjectaccessreviews"],
    ["POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "selfsubjectrulesreviews"],
    [
      "POST",
      "/apis/authorization.k8s.io/v1/namespaces/n/localsubjectaccessreviews",
      "localsubjectaccessreviews",
    ],
  ] as const;
  for (const [method, path, resource] of exempt) {
    const info = classify(method, path);
    assert.not.ok(limitWith({ users: ["*"] }).counts(info), `${method} ${path}`);
    assert.not.ok(limitWith({ all: true }).counts(info), `${method} ${path}`);
    assert.ok(limitWith({ resources: [resource] }).counts(info), `${method} ${path}`);
  }
  for (const path of ["/apis/example.com/v1/leases/one", "/apis/example.com/v1/tokenreviews"])
    assert.ok(limitWith({}).counts(classify("GET", path)), path);
  assert.ok(limitWith({}).counts(classify("GET", "/apis/authentication.k8s.io/v1")));
});

test("the operator who has set a limit, and system:masters, are exempt unless the limit names them in full", () => {
  const origin = { by: "", reason: "", startedMs: 0, endsMs: 0 };
  const applies = (by: string, caller: LimitedCaller, written: Omit<WrittenLimit, "name">): boolean =>
    new Limit(limitOf({ name: "1", ...written }), manualClock(), { origin: { ...origin, by } }).appliesTo(
      caller,
    );
  for (const by of ["jane at 10.0.0.1", "jane (watchkeeper CLI) at 127.0.0.1"]) {
    assert.not.ok(applies(by, jane, { all: true }));
    assert.not.ok(applies(by, jane, { users: ["ja*"] }));
    assert.ok(applies(by, jane, { users: ["jane"] }));
    assert.ok(applies(by, { ...jane, user: "janet" }, { all: true }));
    assert.ok(applies(by, { ...jane, user: undefined }, { all: true }), "an identity that is only claimed");
  }
  const admin = { ...jane, user: "kubernetes-admin", groups: ["system:masters"] };
  assert.not.ok(limitWith({ all: true }).appliesTo(admin));
  assert.not.ok(limitWith({ groups: ["system:*"] }).appliesTo(admin));
  assert.ok(limitWith({ groups: ["system:masters"] }).appliesTo(admin));
  assert.ok(limitWith({ users: ["kubernetes-admin"] }).appliesTo(admin));
});

test("a rate lets a burst begin, and then as many as it says", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 }),
      (perSecond, burst, pauses) => {
        const clock = manualClock();
        const limit = limitWith({ rate: `${perSecond}/s`, burst }, clock);
        const from = clock.now();
        for (const ms of pauses) {
          clock.advance(ms);
          if (limit.isOpen) limit.begin();
          const seconds = (clock.now() - from) / 1000;
          assert.ok(limit.passed <= burst + perSecond * seconds + 1e-6, `${limit.passed} in ${seconds} s`);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test("a rate below one per second, and concurrent requests", () => {
  const clock = manualClock();
  const slow = limitWith({ rate: "30/m" }, clock);
  slow.begin();
  clock.advance(1900);
  assert.not.ok(slow.isOpen);
  clock.advance(200);
  assert.ok(slow.isOpen);
  const few = limitWith({ maxInFlight: 2 });
  few.begin();
  few.begin();
  assert.not.ok(few.isOpen);
  few.end();
  assert.ok(few.isOpen);
});

test("a limit is written as an operator types it", () => {
  const text = (written: Omit<WrittenLimit, "name">): string => String(limitWith(written));
  assert.is(
    text({ users: ["a", "b"], verbs: ["list"], resources: ["secrets"], rate: "1/s", maxInFlight: 5 }),
    "user=a user=b verb=list resource=secrets, 1/s, at most 5 at once",
  );
  assert.is(text({ userAgents: ["argocd*"], rate: "30/m" }), "agent=argocd*, 30/m");
  assert.is(text({ sourceCIDRs: ["10.0.0.0/8"], rate: "100/h" }), "source=10.0.0.0/8, 100/h");
  for (const rate of ["2/s", "90/m", "5000/h", "999999/h"])
    assert.is(text({ users: ["a"], rate }), `user=a, ${rate}`, "a rate of several per second is not rounded");
});

/** Starts requests until the limit admits no more. Returns the number that have started. */
function taken(limit: Limit): number {
  let count = 0;
  for (; limit.isOpen; count += 1) limit.begin();
  return count;
}

test("replicas share a limit of scope AllReplicas: each has its part of the rate, the burst and the concurrent requests", () => {
  const clock = manualClock();
  const replicas = { count: 3 };
  const written = limitOf({ name: "one", users: ["*"], rate: "30/s", scope: "AllReplicas" });
  const limit = new Limit(written, clock, { replicas });
  assert.is(taken(limit), 10);
  clock.advance(1000);
  assert.is(taken(limit), 10);
  replicas.count = 2;
  clock.advance(1000);
  assert.is(taken(limit), 10, "what was earned before the change was earned at the old rate");
  clock.advance(1000);
  assert.is(taken(limit), 15);
  clock.advance(10_000);
  replicas.count = 3;
  assert.is(taken(limit), 10, "tokens above the new burst are lost");
  const few = new Limit(limitOf({ name: "two", users: ["*"], maxInFlight: 8, scope: "AllReplicas" }), clock, {
    replicas,
  });
  assert.is(taken(few), 2);
  replicas.count = 64;
  few.end();
  few.end();
  assert.is(taken(few), 1, "never below one");
  const slow = new Limit(limitOf({ name: "three", users: ["*"], rate: "1/s", scope: "AllReplicas" }), clock, {
    replicas: { count: 4 },
  });
  assert.is(taken(slow), 1);
  clock.advance(3900);
  assert.is(taken(slow), 0);
  clock.advance(200);
  assert.is(taken(slow), 1);
});

test("a limit of scope Replica is not divided, and one that is shared says among how many", () => {
  const written = { name: "one", users: ["jane"], rate: "30/s" } as const;
  const replicas = { count: 3 };
  const own = new Limit(limitOf(written), manualClock(), { replicas });
  assert.is(taken(own), 30);
  assert.is(own.sharers, 1);
  const shared = new Limit(limitOf({ ...written, scope: "AllReplicas" }), manualClock(), { replicas });
  assert.is(String(shared), "user=jane, 30/s, shared by 3 replicas");
  replicas.count = 1;
  assert.is(String(shared), "user=jane, 30/s, shared by 1 replica");
});

test("a worker allows its share of a limit, in addition to the division among replicas", () => {
  const clock = manualClock();
  const limit = limitWith({ rate: "40/s" }, clock);
  limit.share = 0.25;
  assert.is(taken(limit), 10);
  limit.share = 0.95;
  clock.advance(1000);
  assert.is(taken(limit), 10, "what was earned before the change was earned at the old rate");
  clock.advance(1000);
  assert.is(taken(limit), 38);
  const both = new Limit(
    limitOf({ name: "two", users: ["*"], maxInFlight: 12, scope: "AllReplicas" }),
    clock,
    { replicas: { count: 3 } },
  );
  both.share = 0.5;
  assert.is(taken(both), 2);
});

test.run();
