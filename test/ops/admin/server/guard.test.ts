import { type IncomingMessage, request } from "node:http";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Clock, wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { Journal } from "../../../../src/events/journal.ts";
import type { AccessRequest, Authorization } from "../../../../src/ops/admin/authorization/authorization.ts";
import { EventRing } from "../../../../src/ops/admin/events/event-ring.ts";
import { EventStreams } from "../../../../src/ops/admin/events/event-stream.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { jsonReply, type Routes } from "../../../../src/ops/admin/http/reply.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { type Admin, guardOf, startApi } from "../../../../src/ops/admin/server/server.ts";
import { manualClock } from "../../../support/clock.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/guard");

const text = (words: string) => () => ({ status: 200, type: "text/plain", text: words });
const page: Routes = (path) => (path === "/" ? text("the page") : undefined);

/** Accepts only "Bearer good", and permits it only to read. */
const authorization = {
  admit: ({ authorization: field, verb }: AccessRequest) => {
    if (field !== "Bearer good") return Promise.resolve(jsonReply(401, { message: "who?" }));
    return Promise.resolve(verb === "get" ? { username: "alice" } : jsonReply(403, { message: "no" }));
  },
};

const opened: Admin[] = [];
let by: string[] = [];
test.after.each(async () => {
  by = [];
  for (const admin of opened.splice(0)) await within(20_000, "the port to stop", admin.stop());
});

async function start(
  judge: Pick<Authorization, "admit"> = authorization,
  clock: Clock = wallClock,
): Promise<number> {
  const journal = new Journal(wallClock);
  const ring = new EventRing(journal, timesOf(wallClock));
  const api = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal,
    routes: (path) => (path === "/api/v1/leases" ? text("the leases") : page(path)),
    posts: (path) => (path === "/do" ? (posted) => (by.push(posted.by), text("done")()) : undefined),
    events: new EventStreams(ring, clock),
    guard: guardOf(judge, (path) => page(path) !== undefined),
  });
  if (api instanceof Failure) throw new Error(api.message);
  opened.push(api);
  return Number(api.address.split(":").at(-1));
}

type Sent = { readonly method?: string; readonly headers?: Record<string, string> };

function ask(port: number, path: string, { method = "GET", headers = {} }: Sent = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const sent = request({ port, host: "127.0.0.1", path, method, headers, agent: false }, (response) => {
    const challenge = response.headers["www-authenticate"] ?? "";
    if (response.headers["content-type"]?.startsWith("text/event-stream") === true) {
      response.destroy();
      resolve(`${response.statusCode} events`);
      return;
    }
    let body = "";
    response.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    response.on("end", () => resolve(`${response.statusCode} ${challenge}${body.trim()}`));
  });
  sent.on("error", reject).end(method === "POST" ? "{}" : undefined);
  return within(20_000, path, promise);
}

const good = { authorization: "Bearer good" };

test("all but the page's own files is asked for with a token", async () => {
  const port = await start();
  assert.is(await ask(port, "/"), "200 the page");
  for (const path of ["/api/v1/leases", "/api/v1/events", "/nothing", "/do"])
    assert.match(await ask(port, path), /^401 Bearer realm="watchkeeper"/, path);
  assert.is(await ask(port, "/api/v1/leases", { headers: good }), "200 the leases");
  assert.is(await ask(port, "/api/v1/events", { headers: good }), "200 events");
  assert.match(await ask(port, "/nothing", { headers: good }), /^404 /);
});

test("a client that may read may not post, and the page's files cannot be posted to", async () => {
  const port = await start();
  const headers = { ...good, "content-type": "application/json", "x-watchkeeper-operator": "mallory" };
  assert.match(await ask(port, "/do", { method: "POST", headers }), /^403 /);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"])
    assert.match(await ask(port, "/", { method }), /^401 /, method);
  assert.equal(by, []);
});

test("what is done is told under the name that the cluster has for them, not under their own", async () => {
  const port = await start({ admit: () => Promise.resolve({ username: "alice" }) });
  const headers = { ...good, "content-type": "application/json", "x-watchkeeper-operator": "mallory" };
  assert.is(await ask(port, "/do", { method: "POST", headers }), "200 done");
  assert.equal(by, ["alice at 127.0.0.1"]);
});

test("another Host is no reason to refuse: a browser that was led astray has no token", async () => {
  const port = await start();
  assert.is(
    await ask(port, "/api/v1/leases", { headers: { ...good, host: "proxy.example:7480" } }),
    "200 the leases",
  );
});

test("an authorizer that throws lets no client in", async () => {
  const port = await start({ admit: () => Promise.reject(new Error("a bug")) });
  assert.match(await ask(port, "/api/v1/leases", { headers: good }), /^500 /);
});

/** Opens an event stream. `answers`: the status with which the stream's token is judged from now on. */
async function streaming(): Promise<{
  readonly pass: (ms: number) => Promise<boolean>;
  answers: number;
}> {
  const clock = manualClock();
  const state = {
    answers: 200,
    isOpen: true,
    heard: 0,
    pass: async (_ms: number): Promise<boolean> => false,
  };
  const port = await start(
    {
      admit: () =>
        Promise.resolve(state.answers === 200 ? { username: "alice" } : jsonReply(state.answers, {})),
    },
    clock,
  );
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ port, host: "127.0.0.1", path: "/api/v1/events", headers: good, agent: false }, resolve)
      .on("error", reject)
      .end();
  });
  response
    .on("error", () => {})
    .on("close", () => {
      state.isOpen = false;
    });
  response.on("data", () => {
    state.heard += 1;
  });
  /** Lets `ms` pass, one heartbeat at a time, and waits each time until the heartbeat arrives or the stream ends. */
  state.pass = async (ms) => {
    for (let passed = 0; passed < ms && state.isOpen; passed += adminLimits.eventBeatMs) {
      const before = state.heard;
      clock.advance(adminLimits.eventBeatMs);
      const told = async (): Promise<void> => {
        while (state.isOpen && state.heard === before) await new Promise((resolve) => setTimeout(resolve, 2));
      };
      await within(10_000, "a beat", told());
    }
    return state.isOpen;
  };
  return state;
}

test("a stream of events ends with its token, or with the right to read, at the next beat", async () => {
  for (const answer of [401, 403]) {
    const stream = await streaming();
    assert.is(await stream.pass(600_000), true, "as long as both hold");
    stream.answers = answer;
    assert.is(await stream.pass(adminLimits.eventBeatMs), false, String(answer));
  }
});

test("while the cluster cannot be asked a stream stays for as long as the last answer counts", async () => {
  const stream = await streaming();
  stream.answers = 503;
  assert.is(await stream.pass(adminLimits.accessAllowedMs - adminLimits.eventBeatMs), true);
  stream.answers = 200;
  assert.is(await stream.pass(adminLimits.eventBeatMs), true);
  stream.answers = 503;
  assert.is(await stream.pass(adminLimits.accessAllowedMs + 2 * adminLimits.eventBeatMs), false);
});

test.run();
