import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { limits } from "../../../../src/base/limits.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import {
  type AccessRequest,
  type Admitted,
  Authorization,
} from "../../../../src/ops/admin/authorization/authorization.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import type { Reply } from "../../../../src/ops/admin/http/reply.ts";
import type { Review } from "../../../../src/ops/discovery/reviewer.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/authorization/authorization");

type Spec = {
  readonly token?: string;
  readonly user?: string;
  readonly nonResourceAttributes?: { readonly verb: string; readonly path: string };
};

function specOf({ body }: Review): Spec {
  return "spec" in body && typeof body.spec === "object" && body.spec !== null ? body.spec : {};
}

/** A cluster that accepts tokens that begin with "t-", and permits their users what `may` permits. */
class Cluster {
  readonly asked: string[] = [];
  may = (user: string, verb: string, _path: string): boolean => user === "t-operator" || verb === "get";
  nameOf = (token: string): string => token;
  failure: string | undefined;
  /** Sends the answers that have been held back since `hold`. */
  release: (() => void) | undefined;
  #held: Promise<void> | undefined;

  hold(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    this.release = resolve;
  }

  async ask(review: Review): Promise<{ readonly answer: unknown } | Failure> {
    const spec = specOf(review);
    const { verb = "", path = "" } = spec.nonResourceAttributes ?? {};
    this.asked.push(spec.token === undefined ? `${spec.user} ${verb} ${path}` : `token ${spec.token}`);
    await this.#held;
    if (this.failure !== undefined) return new Failure("backend-refused", "backend", this.failure);
    const { token } = spec;
    if (token === undefined)
      return { answer: { status: { allowed: this.may(spec.user ?? "", verb, path), reason: "by rule" } } };
    const isKnown = token.startsWith("t-");
    return {
      answer: { status: { authenticated: isKnown, user: { username: this.nameOf(token), groups: ["g"] } } },
    };
  }

  stop(): void {}
}

function scene(pathPrefix?: string) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const told: Entry[] = [];
  journal.subscribe((entry) => told.push(entry));
  const cluster = new Cluster();
  const prefix = pathPrefix === undefined ? {} : { pathPrefix };
  const authorization = new Authorization({ clock, journal, reviewer: cluster, audiences: [], ...prefix });
  const ask = (token: string | undefined, more: Partial<AccessRequest> = {}): Promise<Admitted | Reply> =>
    authorization.admit({
      verb: "get",
      path: "/api/v1/leases",
      authorization: token === undefined ? undefined : `Bearer ${token}`,
      address: "10.0.0.7",
      ...more,
    });
  /** Returns the user's name if the request is permitted, and the status code otherwise. */
  const said = async (...args: Parameters<typeof ask>): Promise<string | number> => {
    const outcome = await ask(...args);
    return "status" in outcome ? outcome.status : outcome.username;
  };
  return { clock, told, cluster, ask, said };
}

test("a user that the cluster knows and permits is let in, under the name that the cluster gives", async () => {
  const { cluster, said } = scene();
  assert.is(await said("t-reader"), "t-reader");
  assert.equal(cluster.asked, ["token t-reader", "t-reader get /watchkeeper/api/v1/leases"]);
});

test("the metrics port asks for /metrics itself, as the roles of scrapers have it", async () => {
  const { cluster, said } = scene("");
  assert.is(await said("t-reader", { path: "/metrics" }), "t-reader");
  assert.is(cluster.asked[1], "t-reader get /metrics");
});

test("without a token, or with one that the cluster does not know, it is 401 in the form of Kubernetes", async () => {
  const { cluster, said, ask } = scene();
  for (const authorization of ["", "Basic YTpi", "Bearer", "Bearer  ", "Bearer a b", "t-reader"])
    assert.is(await said(undefined, { authorization }), 401, authorization);
  assert.is(await said(undefined), 401);
  assert.equal(cluster.asked, [], "and the cluster is not asked");
  const reply = await ask("garbage");
  assert.ok("status" in reply);
  const { message, ...status } = JSON.parse(String(reply.text));
  assert.equal(status, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    reason: "Unauthorized",
    code: 401,
  });
  assert.not.match(message, "garbage");
  assert.is(await said(undefined, { authorization: "bearer  t-reader " }), "t-reader");
});

test("a user that may read and not change gets a 403, and the journal has the name", async () => {
  const { said, told, ask } = scene();
  const post = { verb: "post", path: "/api/v1/backends/cp-1/drain" } as const;
  assert.is(await said("t-operator", post), "t-operator");
  const reply = await ask("t-reader", post);
  assert.ok("status" in reply);
  assert.is(reply.status, 403);
  const reason = 'User "t-reader" cannot post path "/watchkeeper/api/v1/backends/cp-1/drain": by rule';
  assert.is(JSON.parse(String(reply.text)).message, reason);
  const [entry] = told;
  assert.ok(entry?.kind === "operation.refused");
  assert.equal([entry.by, entry.target, entry.reason], ["t-reader at 10.0.0.7", post.path, reason]);
});

test("a cluster that cannot be asked lets no user in: 503, with its reason in the journal alone, once", async () => {
  const { cluster, said, ask, told, clock } = scene();
  cluster.failure = "https://10.0.0.1:6443: answered 403";
  const reply = await ask("t-operator");
  assert.ok("status" in reply);
  assert.is(reply.status, 503);
  assert.not.match(String(reply.text), "10.0.0.1");
  assert.is(await said("t-operator"), 503);
  assert.equal(
    told.map((entry) => (entry.kind === "review.failed" ? [entry.review, entry.reason] : entry.kind)),
    [["TokenReview", cluster.failure]],
  );
  const { failure } = cluster;
  cluster.failure = undefined;
  assert.is(await said("t-operator"), "t-operator", "and a failure is not remembered");
  clock.advance(adminLimits.tokenReviewedMs);
  cluster.failure = failure;
  assert.is(await said("t-operator"), 503, "nor the user's name, for longer than its time");
  assert.is(told.length, 2, "it is told again, when it was well between");
});

test("a token is asked about again after ten seconds, an access after five minutes, a refusal after half of one", async () => {
  const { cluster, said, clock } = scene();
  const post = { verb: "post" } as const;
  await said("t-reader");
  await said("t-reader", post);
  await said("t-reader");
  assert.is(cluster.asked.length, 3);
  cluster.asked.length = 0;
  clock.advance(adminLimits.tokenReviewedMs);
  await said("t-reader");
  assert.equal(cluster.asked, ["token t-reader"]);
  cluster.may = () => true;
  clock.advance(adminLimits.accessDeniedMs - adminLimits.tokenReviewedMs - 1);
  assert.is(await said("t-reader", post), 403);
  clock.advance(1);
  assert.is(await said("t-reader", post), "t-reader");
  cluster.may = () => false;
  clock.advance(adminLimits.accessAllowedMs - adminLimits.accessDeniedMs - 1);
  assert.is(await said("t-reader"), "t-reader");
  clock.advance(1);
  assert.is(await said("t-reader"), 403);
  // A refusal is cached only for so long, because the token may have been created a moment ago.
  cluster.asked.length = 0;
  await said("garbage");
  await said("garbage");
  clock.advance(adminLimits.tokenReviewedMs);
  await said("garbage");
  assert.equal(cluster.asked, ["token garbage", "token garbage"]);
});

test("a client that guesses tokens keeps no other client out", async () => {
  const { cluster, said } = scene();
  cluster.hold();
  const guesses = Array.from({ length: 50 }, (_, at) => said(`t-${at}`, { address: "10.6.6.6" }));
  const honest = said("t-reader");
  assert.is(cluster.asked.length, limits.tokenReviewsPerAddress + 1);
  cluster.release?.();
  const codes = await Promise.all(guesses);
  assert.is(codes.filter((code) => code === 503).length, 50 - limits.tokenReviewsPerAddress);
  assert.is(await honest, "t-reader");
  assert.is(await said("t-7", { address: "10.6.6.6" }), "t-7", "and when they are done, they may again");
});

test("no more than so many are asked about at once, whatever they come from", async () => {
  const { cluster, said } = scene();
  cluster.hold();
  const many = Array.from({ length: 100 }, (_, at) => said(`t-${at}`, { address: `10.0.1.${at}` }));
  assert.is(cluster.asked.length, limits.reviewsAtOnce);
  cluster.release?.();
  const codes = await Promise.all(many);
  assert.is(codes.filter((code) => code === 503).length, 100 - limits.reviewsAtOnce);
  cluster.asked.length = 0;
  cluster.hold();
  const known = codes.flatMap((code) => (typeof code === "string" ? [code] : []));
  const paths = Array.from({ length: 100 }, (_, at) => said(known[at % known.length], { path: `/p${at}` }));
  await Promise.resolve();
  cluster.release?.();
  const answered = await Promise.all(paths);
  assert.is(answered.filter((code) => code === 503).length, 100 - limits.reviewsAtOnce);
});

test("a client that asks for one path after another keeps no other client out", async () => {
  const { cluster, said } = scene();
  assert.is(await said("t-pod"), "t-pod");
  assert.is(await said("t-reader"), "t-reader");
  cluster.hold();
  const flood = Array.from({ length: 100 }, (_, at) => said("t-pod", { path: `/p${at}` }));
  const honest = said("t-reader", { path: "/api/v1/watches" });
  await new Promise(setImmediate);
  cluster.release?.();
  const codes = await Promise.all(flood);
  assert.is(codes.filter((code) => code === "t-pod").length, limits.reviewsAtOnce / 2);
  assert.is(await honest, "t-reader");
  assert.is(await said("t-pod", { path: "/p99" }), "t-pod", "and when they are done, they may again");
});

test("no token is in memory as it came, in what is kept or told", async () => {
  const { said, told, cluster } = scene();
  cluster.nameOf = () => "a user";
  const keys = await keysOf(async () => {
    await said("t-very-secret", { verb: "post" });
    cluster.failure = "no";
    await said("another-secret");
  });
  assert.ok(keys.length > 0);
  assert.not.match(keys.join(), "secret");
  assert.not.match(JSON.stringify(told), "another-secret");
});

/** Returns the string keys that are set in any Map while `run` runs. */
async function keysOf(run: () => Promise<void>): Promise<string[]> {
  const keys: string[] = [];
  const { set } = Map.prototype;
  // oxlint-disable-next-line no-extend-native
  Map.prototype.set = function record(key: unknown, value: unknown) {
    if (typeof key === "string") keys.push(key);
    return set.call(this, key, value);
  };
  await run().finally(() => {
    // oxlint-disable-next-line no-extend-native
    Map.prototype.set = set;
  });
  return keys;
}

test("what one may do at one path says nothing of another verb, path or user", async () => {
  const { said, cluster } = scene();
  cluster.may = (user, verb, path) => user === "t-a" && verb === "get" && path.endsWith("/leases");
  assert.is(await said("t-a"), "t-a");
  assert.is(await said("t-a", { verb: "post" }), 403);
  assert.is(await said("t-a", { path: "/api/v1/watches" }), 403);
  assert.is(await said("t-b"), 403);
  assert.is(await said("t-a"), "t-a");
  assert.is(cluster.asked.filter((asked) => !asked.startsWith("token")).length, 4);
});

test.run();
