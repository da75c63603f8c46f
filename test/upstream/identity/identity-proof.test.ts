import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { CanaryAnswer } from "../../../src/upstream/identity/canary.ts";
import {
  canaryDueMs,
  type IdentityProof,
  newsIn,
  proofAfter,
  unasked,
} from "../../../src/upstream/identity/identity-proof.ts";

const test = suite("upstream/identity/identity-proof");

const proven: CanaryAnswer = { kind: "proven", gap: "" };
const refused: CanaryAnswer = { kind: "refused", problem: "401" };
const none: CanaryAnswer = { kind: "none", problem: "429" };

const after = (...answers: readonly CanaryAnswer[]): IdentityProof => answers.reduce(proofAfter, unasked);

test("each verdict and each answer give one verdict, and an answer without a result changes none", () => {
  const verdicts = [[], [proven], [refused]].map((before) =>
    [proven, refused, none].map((answer) => after(...before, answer).verdict),
  );
  assert.equal(verdicts, [
    ["proven", "refused", "unknown"],
    ["proven", "refused", "proven"],
    ["proven", "refused", "refused"],
  ]);
});

test("a proof says why it is refused or unknown, and what a proven backend does not take", () => {
  assert.equal(after(proven, refused, none), { verdict: "refused", problem: "401", gap: "", lost: 1 });
  assert.is(after(none).problem, "429");
  assert.is(after(none, proven).problem, "");
  assert.equal(after({ kind: "proven", gap: "no uid" }, none), {
    verdict: "proven",
    problem: "",
    gap: "no uid",
    lost: 1,
  });
});

test("a proven backend is asked again after an hour, a refusing one after 10 s, an unanswered canary soon, with jitter", () => {
  assert.equal(
    [0, 0.5, 1].map((random) => canaryDueMs(after(proven), random)),
    [0.9 * 3_600_000, 3_600_000, 1.1 * 3_600_000],
  );
  assert.is(canaryDueMs(after(refused), 0.5), 10_000);
  const waits = Array.from({ length: 9 }, (_, at) =>
    canaryDueMs(after(proven, ...Array.from({ length: at + 1 }, () => none)), 0.5),
  );
  assert.equal(waits, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
});

test("operators are told of each verdict once, and of a ready backend that answers five canaries without a result", () => {
  assert.is(newsIn(after(refused), unasked, false), "refused");
  assert.is(newsIn(after(refused, refused), after(refused), true), undefined);
  assert.is(newsIn(after(refused, { kind: "refused", problem: "403" }), after(refused), true), "refused");
  assert.is(newsIn(after(proven, refused), after(proven), true), "refused");
  assert.is(newsIn(after(proven), unasked, true), "proven");
  assert.is(newsIn(after(proven, proven), after(proven), true), undefined);
  assert.is(newsIn(after(proven, { kind: "proven", gap: "no uid" }), after(proven), true), "proven");
  const lost = Array.from({ length: 5 }, () => none);
  assert.is(newsIn(after(...lost.slice(1)), after(...lost.slice(2)), true), undefined);
  assert.is(newsIn(after(...lost), after(...lost.slice(1)), true), "refused");
  assert.is(newsIn(after(...lost), after(...lost.slice(1)), false), undefined, "it has its own incident");
  assert.is(newsIn(after(proven, ...lost), after(proven, ...lost.slice(1)), true), undefined);
  assert.is(newsIn(unasked, after(refused), true), "dropped");
  assert.is(newsIn(unasked, after(proven), true), undefined);
});

test.run();
