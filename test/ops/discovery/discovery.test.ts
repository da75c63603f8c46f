import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { type Discovered, foundAt } from "../../../src/ops/discovery/discovered.ts";
import { Discovery, type Source } from "../../../src/ops/discovery/discovery.ts";
import { discoveryLimits } from "../../../src/ops/discovery/limits.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("ops/discovery/discovery");

const one = [foundAt("10.0.0.1", 6443)];
const two = [...one, foundAt("10.0.0.2", 6443)];

/** A source of backends that answers only when the test tells it to. */
class PlayedSource implements Source {
  readonly from = "dns";
  expires = false;
  asked = 0;
  isStopped = false;
  isGivenUp = false;
  onWatch: () => void = () => {};
  #resolve: (outcome: readonly Discovered[] | Failure) => void = () => {};

  ask(): Promise<readonly Discovered[] | Failure> {
    this.asked += 1;
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  watch(run: () => void): () => void {
    this.onWatch = run;
    return () => {};
  }

  giveUp(): void {
    this.isGivenUp = true;
  }

  stop(): void {
    this.isStopped = true;
  }

  async answer(outcome: readonly Discovered[] | Failure): Promise<void> {
    this.#resolve(outcome);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function start(answering: readonly string[] = []) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const source = new PlayedSource();
  const sets: string[][] = [];
  const onChange = (found: readonly Discovered[]): void => void sets.push(found.map(({ name }) => name));
  const answers = (name: string): boolean => answering.includes(name);
  const discovery = new Discovery({
    clock,
    journal,
    source,
    intervalMs: 30_000,
    found: [],
    answers,
    onChange,
  });
  discovery.start();
  return { clock, entries, source, sets, discovery };
}

const broken = new Failure("bad-file", "proxy", "Cannot resolve: ENOTFOUND");

test("what is found is told when it changes, and only then", async () => {
  const { clock, source, sets, entries, discovery } = start();
  await source.answer(one);
  clock.advance(30_000);
  await source.answer(one);
  clock.advance(30_000);
  await source.answer(two);
  clock.advance(30_000);
  await source.answer([foundAt("10.0.0.2", 6443)]);
  assert.equal(sets, [["10.0.0.1:6443"], ["10.0.0.1:6443", "10.0.0.2:6443"], ["10.0.0.2:6443"]]);
  assert.equal(entries.at(-1), {
    kind: "discovery.changed",
    from: "dns",
    added: [],
    removed: ["10.0.0.1:6443"],
  });
  assert.equal(discovery.record, { lastSuccessAtMs: clock.wall(), failures: 0, found: 1 });
});

const [first, second] = ["10.0.0.1:6443", "10.0.0.2:6443"];

/**
 * Starts discovery with two backends, and then removes the second from the source's list. Both backends answer at
 * first.
 */
async function unlisted(expires = true) {
  const answering = [first, second];
  const scene = start(answering);
  scene.source.expires = expires;
  await scene.source.answer(two);
  scene.clock.advance(30_000);
  await scene.source.answer(one);
  return { ...scene, answering };
}

test("an apiserver that is listed no more and answers stays for a while: its lease ran out while etcd was away", async () => {
  const { clock, source, sets, entries, discovery } = await unlisted();
  assert.equal([sets.length, discovery.record.found], [1, 2]);
  assert.equal(entries.slice(1), [{ kind: "discovery.backends_retained", from: "dns", names: [second] }]);
  clock.advance(30_000);
  await source.answer(one);
  assert.equal([sets.length, entries.length], [1, 2], "told once");
  // The backend is listed again, so its next removal is a new one.
  clock.advance(20_000);
  source.onWatch();
  await source.answer(two);
  clock.advance(30_000);
  await source.answer(one);
  assert.equal([sets.length, entries.length, entries.at(-1)?.kind], [1, 3, "discovery.backends_retained"]);
});

test("it stays for so long only, and not when it does not answer", async () => {
  const kept = await unlisted();
  for (let passed = 0; passed < discoveryLimits.unlistedKeptMs; passed += 30_000) {
    assert.is(kept.discovery.found.length, 2);
    kept.clock.advance(30_000);
    await kept.source.answer(one);
  }
  assert.equal(kept.sets.at(-1), [first]);
  const told = { kind: "discovery.changed", from: "dns", added: [], removed: [second] };
  assert.equal(kept.entries.at(-1), told);
  const dying = await unlisted();
  dying.answering.pop();
  dying.clock.advance(30_000);
  await dying.source.answer(one);
  assert.equal([dying.sets.at(-1), dying.entries.at(-1)], [[first], told]);
});

test("backends that answer stay while none of the listed ones does: the list may be of another's making", async () => {
  const { clock, source, sets, entries } = start([first, second]);
  source.expires = true;
  await source.answer(two);
  const crowd = Array.from({ length: limits.discoveredBackends }, (_, at) => foundAt(`10.9.1.${at}`, 6443));
  clock.advance(30_000);
  await source.answer(crowd);
  assert.equal([sets.at(-1)?.length, sets.at(-1)?.slice(0, 2)], [crowd.length, [first, second]]);
  const foreign = [foundAt("10.9.0.1", 6443)];
  for (let passed = 0; passed < 3 * discoveryLimits.unlistedKeptMs; passed += 30_000) {
    clock.advance(30_000);
    await source.answer(foreign);
  }
  assert.equal(sets.at(-1), [first, second, "10.9.0.1:6443"]);
  assert.equal(entries.filter(({ kind }) => kind === "discovery.backends_retained").length, 1);
});

test("what DNS or a file lists no more is gone at once: an operator has taken it out", async () => {
  const { sets } = await unlisted(false);
  assert.equal(sets.at(-1), [first]);
});

test("a source that fails or says nothing keeps the last set, and is journaled once (F21)", async () => {
  const { clock, source, sets, entries, discovery } = start();
  await source.answer(two);
  clock.advance(30_000);
  for (let times = 0; times < 3; times += 1) {
    await source.answer(broken);
    clock.advance(8000);
  }
  await source.answer([]);
  assert.equal([sets.length, discovery.found.length, discovery.record.failures], [1, 2, 4]);
  const kinds = entries.map((entry) => (entry.kind === "discovery.failed" ? entry.reason : entry.kind));
  assert.equal(kinds, ["discovery.changed", "Cannot resolve: ENOTFOUND", "Discovered no backends at all"]);
  clock.advance(30_000);
  await source.answer(two);
  assert.is(entries.at(-1)?.kind, "discovery.recovered");
});

test("after a failure it looks sooner, later each time, never later than usual", async () => {
  const { clock, source } = start();
  for (const waitMs of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    await source.answer(broken);
    const { asked } = source;
    clock.advance(waitMs - 1);
    assert.is(source.asked, asked);
    clock.advance(1);
    assert.is(source.asked, asked + 1);
  }
});

test("a source that hangs is given up, and not asked again before it has let go", async () => {
  const { clock, source, entries, sets } = start();
  clock.advance(discoveryLimits.discoveryMs);
  assert.ok(source.isGivenUp);
  assert.ok(
    entries.some((entry) => entry.kind === "discovery.failed" && entry.reason === "No answer in 10000 ms"),
  );
  clock.advance(600_000);
  assert.is(source.asked, 1);
  await source.answer(one);
  assert.is(sets.length, 1);
  clock.advance(30_000);
  assert.is(source.asked, 2);
});

test("a change is looked at at once, also one that comes during a look", async () => {
  const { clock, source, sets } = start();
  await source.answer(one);
  clock.advance(10);
  source.onWatch();
  source.onWatch();
  assert.is(source.asked, 2);
  await source.answer(one);
  assert.is(source.asked, 3);
  await source.answer(two);
  assert.is(sets.length, 2);
});

test("once stopped it tells and asks nothing", async () => {
  const { clock, source, sets, discovery } = start();
  discovery.stop();
  await source.answer(one);
  clock.advance(600_000);
  assert.equal([source.isStopped, source.asked, sets.length], [true, 1, 0]);
});

test("a discovery that ends is a problem no more, and a lookup that ends later is no new one", async () => {
  const { clock, entries, source, discovery } = start();
  await source.answer(new Failure("bad-file", "proxy", "ENOTFOUND"));
  discovery.stop();
  discovery.stop();
  clock.advance(60_000);
  const kinds = (): string[] => entries.map(({ kind }) => kind);
  assert.equal(kinds(), ["discovery.failed", "discovery.recovered"]);
  const other = start();
  other.discovery.stop();
  other.clock.advance(60_000);
  assert.equal(other.entries, []);
});

test.run();
