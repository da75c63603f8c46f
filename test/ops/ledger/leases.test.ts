import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Caller } from "../../../src/ops/ledger/caller.ts";
import type { LeaseRecord } from "../../../src/ops/ledger/lease-body.ts";
import { type LeaseReport, Leases } from "../../../src/ops/ledger/leases.ts";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { callerAt } from "../../support/callers.ts";

const test = suite("ops/ledger/leases");

const name = { resource: "leases", namespace: "n", name: "leader" } as const;
const account = { name: "system:serviceaccount:n:web", namespace: "n" };
const one = callerAt("10.0.0.1", { ...account, pod: "web-7d-bbbbb" });
const other = callerAt("10.0.0.2", { ...account, pod: "web-7d-ccccc" });

type More = {
  readonly session?: number;
  readonly isCreate?: boolean;
  readonly record?: Partial<LeaseRecord>;
};

/** Returns the leases, and a function that records one renewal: by which caller, for which holder, and when. */
function scene() {
  const leases = new Leases();
  const renew = (
    caller: Caller,
    holder: string | undefined,
    at: number,
    more: More = {},
  ): string | undefined => {
    const record = { name: "", holder, durationMs: 15_000, isRenewal: true, ...more.record };
    const { session = 1, isCreate = false } = more;
    return said(leases.written({ name, record, caller, session, isCreate }, at));
  };
  return { leases, renew };
}

function said(told: LeaseReport | undefined): string | undefined {
  return told === undefined ? undefined : `${told.judgement.verdict} ${told.judgement.detector}`;
}

test("a leader that renews, lets go and is followed by another is as it should be", () => {
  const { leases, renew } = scene();
  assert.is(renew(one, "web-7d-bbbbb_1", 0, { isCreate: true }), undefined);
  for (let at = 2000; at < 20_000; at += 2000) assert.is(renew(one, "web-7d-bbbbb_1", at), undefined);
  assert.is(renew(one, "", 20_000), undefined);
  assert.is(renew(other, "web-7d-ccccc_2", 20_500), undefined);
  const [lease] = leases.all;
  assert.equal([lease?.holder, lease?.renewals, lease?.heldSince], ["web-7d-ccccc_2", 11, 20_500]);
  assert.equal(
    lease?.handovers.map(({ to, isReleased }) => [to, isReleased]),
    [
      ["web-7d-bbbbb_1", true],
      ["web-7d-ccccc_2", true],
    ],
  );
});

test("the watches of a caller that renews a leader lease move first, those of one that renews its node's lease do not", () => {
  const leases = new Leases();
  const leader = callerAt("10.0.0.3", account);
  const node = callerAt("10.0.0.4", account);
  const record = { name: "", holder: "h", durationMs: 15_000, isRenewal: true };
  leases.written({ name, record, caller: leader, session: 1, isCreate: false }, 0);
  const ofNode = { ...name, namespace: "kube-node-lease" };
  leases.written({ name: ofNode, record, caller: node, session: 1, isCreate: false }, 0);
  assert.equal([leader.urgency, node.urgency], [0, 2]);
});

test("one that lapses may be taken; one that was renewed a moment ago may not", () => {
  const { renew } = scene();
  renew(one, "web-7d-bbbbb_1", 0);
  assert.is(renew(other, "web-7d-ccccc_2", 16_000), undefined);
  const { renew: again } = scene();
  again(one, "web-7d-bbbbb_1", 0);
  assert.is(again(other, "web-7d-ccccc_2", 3000), "contested takeover");
});

test("two clients by turns under one name contest it, also from one address; a restart does not (seed 002)", () => {
  const { leases, renew } = scene();
  renew(one, "leader", 0);
  assert.is(renew(other, "leader", 1000), undefined, "it may have begun anew there");
  assert.is(renew(other, "leader", 3000), undefined);
  assert.is(renew(one, "leader", 3500), "contested alternation");
  const judgement = leases.all[0]?.judgement;
  assert.match(
    judgement?.reason ?? "",
    "two clients under one holder name: manager (system:serviceaccount:n:web, 10.0.0.1)",
  );
  assert.equal([judgement?.valueMs, judgement?.limitMs], [3500, 30_000]);
  const behindOne = scene();
  for (const [at, session] of [1, 2, 1].entries()) {
    const word = behindOne.renew(one, "leader", at * 2000, { session });
    assert.is(word, at === 2 ? "contested alternation" : undefined);
  }
});

test("by turns without letting go, each time it has lapsed", () => {
  const { renew } = scene();
  renew(one, "web-7d-bbbbb_1", 0);
  renew(other, "web-7d-ccccc_2", 16_000);
  assert.is(renew(one, "web-7d-bbbbb_1", 32_000), "contested turns");
});

test("a pod that was deleted, and renews all the same, is a ghost (seed 002)", () => {
  const { leases, renew } = scene();
  const opaque = callerAt("10.9.3.7");
  renew(opaque, "web-7d-bbbbb_1", 0);
  leases.pods.deleted("n", "web-7d-bbbbb", 1000);
  assert.is(renew(opaque, "web-7d-bbbbb_1", 1500), undefined, "it may have been under way");
  assert.is(renew(opaque, "web-7d-bbbbb_1", 2500), "ghost deleted-pod");
  assert.match(leases.all[0]?.judgement?.reason ?? "", "Pod n/web-7d-bbbbb was deleted 1.5 s ago");
});

test("the pod of the token must be the one that is named, if one is", () => {
  const { leases, renew } = scene();
  assert.is(renew(one, "web-7d-ccccc_2", 0), "ghost pod");
  assert.match(leases.all[0]?.judgement?.reason ?? "", "the token of pod n/web-7d-bbbbb from ");
  const free = scene();
  assert.is(free.renew(one, "a-name-of-its-own", 0), undefined);
  assert.is(
    free.renew(callerAt("10.0.0.3", { ...account, pod: "x-1", node: "node-7" }), "node-7_9", 20_000),
    undefined,
  );
});

test("a stranger is neither by identity nor by program one that has held it", () => {
  const { renew } = scene();
  for (let at = 0; at < 8000; at += 2000) renew(one, "web-7d-bbbbb_1", at);
  renew(one, "", 8000);
  assert.is(renew(callerAt("10.0.0.9", { name: "jane" }, "curl"), "me", 9000), "unknown identity");
  const young = scene();
  young.renew(one, "web-7d-bbbbb_1", 0);
  young.renew(one, "", 1000);
  assert.is(
    young.renew(callerAt("10.0.0.9", { name: "jane" }, "curl"), "me", 2000),
    undefined,
    "no identity is usual yet",
  );
});

test("a label on a lease is no renewal; a renewal without a holder counts for the present one", () => {
  const { leases, renew } = scene();
  renew(one, "leader", 0);
  assert.is(renew(other, undefined, 500, { record: { isRenewal: false } }), undefined);
  assert.is(leases.all[0]?.renewals, 1);
  renew(one, undefined, 2000, { record: { durationMs: undefined } });
  assert.equal([leases.all[0]?.renewedAt, leases.all[0]?.durationMs], [2000, 15_000]);
});

test("it is told when it begins, and now and then while it goes on", () => {
  const { renew } = scene();
  let told = 0;
  for (let at = 0; at < 60_000; at += 1000)
    if (renew(at % 2000 === 0 ? one : other, "leader", at) !== undefined) told += 1;
  assert.is(told, Math.floor(60_000 / ledgerLimits.leaseReportMs));
});

test("of too many leases the one renewed least lately is forgotten, and each keeps few renewers", () => {
  const { leases, renew } = scene();
  for (let index = 0; index < 100; index += 1)
    renew(callerAt(`10.0.0.${index}`), `h-${index}`, 100_000 * index);
  const [lease] = leases.all;
  assert.equal(
    [lease?.renewers.length, lease?.handovers.length],
    [ledgerLimits.leaseRenewers, ledgerLimits.leaseHandovers],
  );
  const record = { name: "", holder: "x".repeat(1000), durationMs: 1, isRenewal: true };
  for (let index = 0; index < ledgerLimits.leases; index += 1)
    leases.written(
      { name: { ...name, name: `l-${index}` }, record, caller: one, session: 1, isCreate: true },
      0,
    );
  assert.is(leases.all.length, ledgerLimits.leases);
  assert.equal([leases.all[0]?.name.name, leases.all[0]?.holder.length], ["l-0", ledgerLimits.holderChars]);
});

test.run();
