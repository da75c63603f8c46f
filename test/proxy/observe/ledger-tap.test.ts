/** Tests the ledger tap on the whole data path, with scripted clients and backends. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, type EntryOf, Journal } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { classify } from "../../../src/kube/request-info.ts";
import type { Caller } from "../../../src/ops/ledger/caller.ts";
import type { Lease } from "../../../src/ops/ledger/lease.ts";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { noSubject } from "../../../src/ops/ledger/subject.ts";
import {
  BodyCopy,
  type LedgerFact,
  LedgerTap,
  ledgerTapLimits,
} from "../../../src/proxy/observe/ledger-tap.ts";
import { callerAt } from "../../support/callers.ts";
import { clientOf } from "../../support/client.ts";
import { manualClock } from "../../support/clock.ts";
import { jwt } from "../../support/jwt.ts";
import { bearer, type PlayedClient, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/observe/ledger-tap");

/**
 * Feeds these pieces to a copy of a request body, and then these response statuses. Returns the bodies that the copy
 * reports.
 */
function copied(pieces: readonly string[], ...statuses: readonly number[]): string[] {
  const taken: string[] = [];
  const copy = new BodyCopy((body) => taken.push(body.toString()));
  for (const piece of pieces) {
    const bytes = Buffer.from(`<${piece}>`);
    copy.add(bytes, 1, bytes.length - 1);
    bytes.fill("!"); // as a forwarder in place may
  }
  for (const status of statuses) copy.answered(status);
  return taken;
}

test("a copied body is read once, when a backend has accepted it", () => {
  assert.equal(copied(["ab", "cd"], 103), []);
  assert.equal(copied(["ab", "cd"], 103, 200, 200), ["abcd"]);
});

test("a body that was refused, or is too long, is not read", () => {
  assert.equal(copied(["ab"], 409), []);
  assert.equal(copied(["x".repeat(ledgerTapLimits.leaseBodyBytes), "y"], 200), []);
});

const leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases";

class Scene {
  readonly path = new PlayedPath(["a"]);

  /** Sends a request with this User-Agent, token and body, and has the backend answer it. */
  ask(
    client: PlayedClient,
    what: string,
    { agent = "manager/v1", token = "t", body = "", status = 200 } = {},
  ): void {
    const [method = "", target = ""] = what.split(" ");
    const fields = [bearer(token), new Field("user-agent", agent)];
    const ear = client.ask(method, target, fields, body === "");
    if (body !== "") ear.say(body, true);
    this.path.settle();
    this.path.backend("a").last.answer(status, "{}");
    this.path.settle();
  }

  renew(client: PlayedClient, holder: string, token = "t"): void {
    const spec = {
      holderIdentity: holder,
      leaseDurationSeconds: 15,
      renewTime: "2026-11-22T00:00:00.000000Z",
    };
    const body = JSON.stringify({ metadata: { name: "leader" }, spec });
    this.ask(client, `PUT ${leases}/leader`, { body, token });
  }

  get callers(): readonly Caller[] {
    return this.path.ledgerTap.ledger.all;
  }

  get lease(): Lease | undefined {
    return this.path.ledgerTap.leases.all[0];
  }

  judged(): string[] {
    return this.path.entries
      .filter((entry): entry is EntryOf<"lease.suspect"> => entry.kind === "lease.suspect")
      .map(({ verdict, detector, client }) => `${verdict} ${detector} ${client}`);
  }
}

test("requests, errors and bytes are counted for the caller that sent the request", () => {
  const scene = new Scene();
  const client = scene.path.client();
  const token = jwt({ sub: "system:serviceaccount:n:web" });
  scene.ask(client, "GET /api/v1/pods", { token });
  scene.ask(client, "GET /api/v1/pods/x", { token, status: 404 });
  scene.ask(client, "GET /api/v1/pods", { agent: "kubectl/v1.36.1 (linux/amd64)", token: "opaque" });
  const rows = scene.callers.map(({ subject, agent, address, requests, errors, bytes, active }) => [
    subject.name,
    agent,
    address,
    requests,
    errors,
    bytes,
    active,
  ]);
  assert.equal(rows, [
    ["system:serviceaccount:n:web", "manager", "10.0.0.9", 2, 1, 4, 0],
    ["", "kubectl", "10.0.0.9", 1, 0, 2, 0],
  ]);
});

test("a token is nowhere in what is kept", () => {
  const scene = new Scene();
  const secret = jwt({ sub: "s" });
  scene.ask(scene.path.client(), "GET /api/v1/pods", { token: secret });
  const { ledgerTap } = scene.path;
  assert.not.match(JSON.stringify([ledgerTap.ledger.all, ledgerTap.leases.all]), secret.split(".")[1] ?? "");
});

test("a caller that was forgotten is found anew when it asks again", () => {
  const scene = new Scene();
  const client = scene.path.client();
  scene.ask(client, "GET /api/v1/pods");
  const [first] = scene.callers;
  const { ledger } = scene.path.ledgerTap;
  for (let index = 0; index < ledgerLimits.callers; index += 1)
    ledger.of({ subject: noSubject, agent: `f-${index}`, address: "x" }, 0);
  assert.is(first?.isForgotten, true);
  scene.ask(client, "GET /api/v1/pods");
  assert.is(scene.callers.at(-1)?.requests, 1);
});

test("a lease is known by its renewals, and by their senders", () => {
  const scene = new Scene();
  const client = scene.path.client({ address: "10.0.0.7" });
  scene.renew(client, "web-0_1");
  const { lease } = scene;
  assert.equal([lease?.text, lease?.holder, lease?.durationMs], ["leases n/leader", "web-0_1", 15_000]);
  assert.is(lease?.renewers[0]?.caller.address, "10.0.0.7");
  assert.equal(scene.judged(), []);
});

test("two clients under one name are told to the journal", () => {
  const scene = new Scene();
  const [one, other] = [
    scene.path.client({ address: "10.0.0.1" }),
    scene.path.client({ address: "10.0.0.2" }),
  ];
  for (const client of [one, other, one]) scene.renew(client, "leader");
  assert.equal(scene.judged(), ["contested alternation 10.0.0.1"]);
});

test("a renewal that was refused renews nothing; nor does a body that is something else", () => {
  const scene = new Scene();
  const client = scene.path.client();
  scene.ask(client, `PUT ${leases}/leader`, { body: "{}", status: 409 });
  scene.ask(client, `PUT ${leases}/leader`, { body: "{not json" });
  scene.ask(client, `POST /api/v1/namespaces/n/configmaps`, { body: '{"data":{}}' });
  assert.is(scene.lease, undefined);
});

test("a pod deleted without grace that goes on renewing is a ghost; one that is there again is not", () => {
  const scene = new Scene();
  const [admin, holder] = [scene.path.client(), scene.path.client({ address: "10.9.3.7" })];
  scene.renew(holder, "web-0_1");
  scene.ask(admin, "DELETE /api/v1/namespaces/n/pods/web-0?gracePeriodSeconds=0");
  scene.path.clock.advance(2000);
  scene.renew(holder, "web-0_1");
  assert.equal(scene.judged(), ["ghost deleted-pod 10.9.3.7"]);
  scene.ask(admin, "PATCH /api/v1/namespaces/n/pods/web-0/status", { body: "{}" });
  scene.path.clock.advance(ledgerLimits.leaseReportMs);
  scene.renew(holder, "web-0_1");
  assert.is(scene.judged().length, 1);
  scene.ask(admin, "DELETE /api/v1/namespaces/n/pods/web-0", { body: '{"gracePeriodSeconds":30}' });
  assert.is(scene.path.ledgerTap.leases.pods.deletedAt("n", "web-0"), undefined);
});

test("many callers that list again what they had watched are a storm; pages of one list are not", () => {
  const scene = new Scene();
  const clients = Array.from({ length: ledgerTapLimits.stormRelists }, (_, index) =>
    scene.path.client({ address: `10.0.1.${index}` }),
  );
  const stormed = (): number =>
    scene.path.entries.filter(({ kind }) => kind === "relist_storm.detected").length;
  for (const client of clients) scene.ask(client, "GET /api/v1/pods?watch=1&resourceVersion=7");
  for (const client of clients) scene.ask(client, "GET /api/v1/pods?limit=5&continue=abc");
  assert.is(stormed(), 0);
  for (const client of clients) scene.ask(client, "GET /api/v1/pods?resourceVersion=0");
  assert.is(stormed(), 1);
});

test("the parent of workers sees one storm and one contested lease, whichever workers the clients are at", () => {
  const clock = manualClock();
  const journals = [new Journal(clock), new Journal(clock)] as const;
  const entries: Entry[] = [];
  journals[0].subscribe((entry) => entries.push(entry));
  const ofWorker: Entry[] = [];
  journals[1].subscribe((entry) => ofWorker.push(entry));
  const parent = new LedgerTap(clock, journals[0]);
  // A worker's facts reach the parent process as JSON.
  const tell = (fact: LedgerFact): void => parent.learn(JSON.parse(JSON.stringify(fact)) as LedgerFact);
  const workers = [new LedgerTap(clock, journals[1], tell), new LedgerTap(clock, journals[1], tell)] as const;
  clock.advance(1);
  for (let list = 0; list < ledgerTapLimits.stormRelists; list += 1) {
    const caller = callerAt(`10.0.0.${list}`);
    caller.watched("/pods", false);
    const info = classify("GET", "/api/v1/pods");
    const request = { caller, client: clientOf(), info, target: "/api/v1/pods", auditId: "" };
    (list % 2 === 0 ? workers[0] : workers[1]).asked(request, undefined);
  }
  assert.is(entries.filter(({ kind }) => kind === "relist_storm.detected").length, 1);
  const name = { resource: "leases", namespace: "n", name: "leader" } as const;
  const record = { name: "leader", holder: "a", durationMs: 15_000, isRenewal: true };
  for (let turn = 0; turn < 6; turn += 1)
    for (const address of ["10.0.0.1", "10.0.0.2"]) {
      clock.advance(1000);
      const { subject, agent } = callerAt(address);
      tell({
        of: "lease",
        caller: { subject, agent, address },
        name,
        record,
        session: 1,
        isCreate: false,
        auditId: "",
      });
    }
  assert.ok(entries.some((entry) => entry.kind === "lease.suspect" && entry.verdict === "contested"));
  assert.equal(ofWorker, []);
  assert.is(parent.ledger.size, 0, "the workers count the requests of their clients");
});

test.run();
