import { suite } from "uvu";
import * as assert from "uvu/assert";
import { IdentityProofs } from "../../../src/proxy/tls/identity-proofs.ts";
import type { CanaryAnswer } from "../../../src/upstream/identity/canary.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/tls/identity-proofs");

const proven: CanaryAnswer = { kind: "proven", gap: "" };
const refused: CanaryAnswer = { kind: "refused", problem: "another user" };
const none: CanaryAnswer = { kind: "none", problem: "timed out" };

type Asked = { readonly backend: string; answer(outcome: CanaryAnswer | Error): Promise<void> };

/** Lets all promises that are settled now run their callbacks. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
}

function scene(...backends: string[]) {
  const clock = manualClock();
  const asked: Asked[] = [];
  const changes: string[] = [];
  const proofs = new IdentityProofs({
    clock,
    random: () => 0.5,
    ask: (backend) => {
      const { promise, resolve, reject } = Promise.withResolvers<CanaryAnswer>();
      asked.push({
        backend,
        async answer(outcome) {
          if (outcome instanceof Error) reject(outcome);
          else resolve(outcome);
          await settle();
        },
      });
      return promise;
    },
    changed: (backend, now, was) => {
      if (now.verdict !== was.verdict) changes.push(`${backend} ${was.verdict} to ${now.verdict}`);
    },
  });
  const at = (...names: string[]): void =>
    proofs.reconcile(new Map(names.map((name) => [name.split("@")[0] ?? "", name])));
  at(...backends);
  const verdict = (backend: string): string | undefined => proofs.of(backend)?.verdict;
  return { clock, asked, changes, proofs, at, verdict };
}

test("each backend is asked at once, an added one when it is added, and a removed one is forgotten", async () => {
  const { asked, at, verdict, changes } = scene("a");
  assert.equal([asked.map(({ backend }) => backend), verdict("a")], [["a"], "unknown"]);
  await asked[0]?.answer(proven);
  at("a", "b");
  assert.equal([asked.at(-1)?.backend, verdict("a"), verdict("b")], ["b", "proven", "unknown"]);
  await asked[1]?.answer(refused);
  at("b");
  assert.equal([verdict("a"), verdict("b")], [undefined, "refused"]);
  assert.equal(changes, ["a unknown to proven", "b unknown to refused", "a proven to unknown"]);
});

test("a backend of the same name at another address is a new one", async () => {
  const { asked, at, verdict } = scene("a@10.0.0.1");
  await asked[0]?.answer(proven);
  at("a@10.0.0.1");
  assert.equal([verdict("a"), asked.length], ["proven", 1]);
  at("a@10.0.0.2");
  assert.equal([verdict("a"), asked.length], ["unknown", 2]);
});

test("after an hour a proven backend is asked again, and another identity takes its proof away", async () => {
  const { clock, asked, verdict } = scene("a");
  await asked[0]?.answer(proven);
  clock.advance(3_599_999);
  assert.is(asked.length, 1);
  clock.advance(1);
  assert.is(verdict("a"), "proven");
  await asked[1]?.answer(refused);
  assert.is(verdict("a"), "refused");
  clock.advance(10_000);
  await asked[2]?.answer(proven);
  assert.is(verdict("a"), "proven");
});

test("a canary without a result, or one that throws, leaves the verdict and is repeated soon", async () => {
  const { clock, asked, verdict } = scene("a");
  await asked[0]?.answer(proven);
  clock.advance(3_600_000);
  await asked[1]?.answer(none);
  clock.advance(250);
  await asked[2]?.answer(new Error("no socket"));
  clock.advance(500);
  assert.equal([verdict("a"), asked.length], ["proven", 4]);
});

test("a backend that becomes ready is asked at once, but never twice at the same time", async () => {
  const { asked, proofs } = scene("a");
  proofs.askNow("a");
  assert.is(asked.length, 1);
  await asked[0]?.answer(proven);
  proofs.askNow("a");
  proofs.askNow("a");
  assert.is(asked.length, 2);
});

test("a new certificate begins unknown, known answers count, and the answer to an old canary does not", async () => {
  const { asked, proofs, verdict, changes } = scene("a", "b");
  await asked[1]?.answer(proven);
  proofs.stop();
  const addresses = new Map(["a", "b"].map((name) => [name, name]));
  proofs.reconcile(addresses, new Map([["b", refused]]));
  assert.equal([verdict("a"), verdict("b"), asked.length], ["unknown", "refused", 3]);
  await asked[0]?.answer(proven);
  assert.is(verdict("a"), "unknown", "the old certificate's canary");
  assert.equal(changes.slice(-2), ["b proven to unknown", "b unknown to refused"]);
  await asked[2]?.answer(proven);
  assert.is(verdict("a"), "proven");
});

test("once stopped, it sends no canary any more", async () => {
  const { clock, asked, proofs } = scene("a", "b");
  await asked[0]?.answer(proven);
  proofs.stop();
  await asked[1]?.answer(none);
  clock.advance(10_000_000);
  assert.is(asked.length, 2);
});

test.run();
