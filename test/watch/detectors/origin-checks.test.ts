import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { type Asked, PlayedPath } from "../../support/path.ts";
import { type Random, seeded } from "../../support/random.ts";
import { blackHole, goAway, json, linesOf, ok, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch/detectors/origin-checks");

const resource = "/apis/far.example.com/v1/things";
const openApi = "/openapi/v3/apis/far.example.com/v1";
const titled = (title: string): string =>
  `{"openapi":"3.0.0","info":{"title":"${title}","version":"v0.1.0"},"paths":{}}`;
const crd = titled("Kubernetes CRD Swagger");
const proxied = [...ok, new Field("audit-id", "1"), new Field("audit-id", "1")];

type Scene = {
  watch: PlayedWatch;
  /** The watch's upstream stream, and the requests that the proxy sent with the client's credentials. */
  asked: Asked;
  asks(): readonly Asked[];
};

function scene(
  head: Field[] = ok,
  path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true }),
): Scene {
  const watch = new PlayedWatch({ path, resource });
  const asked = watch.from.last;
  watch.serve(watch.from, "+8a", head);
  return { watch, asked, asks: () => watch.from.asked.filter(({ request }) => request.path === openApi) };
}

test("an API whose kind is not known is asked for in its client's name; until then its watch is another server's", () => {
  const { watch, asks } = scene();
  assert.equal(
    asks().map(({ request }) => request.fields.find(({ name }) => name === "authorization")?.value),
    ["Bearer t"],
  );
  assert.equal(Array.from(watch.path.migrations.watches.resources), []);
  watch.kill(watch.from);
  watch.advance(2000);
  assert.is(watch.to.asked.length, 0, "no other backend is asked");
  watch.has("+8a", "ended");
});

test("a CRD's watch goes on elsewhere from then on, from where it is, and has bookmarks", () => {
  const { watch, asks } = scene();
  asks()[0]?.answer(200, crd, [json]);
  watch.path.settle();
  assert.equal(Array.from(watch.path.migrations.watches.resources), ["far.example.com/things"]);
  watch.kill(watch.from);
  assert.is(watch.queryOf(watch.to), "resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=3600");
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
  const second = new PlayedWatch({ path: watch.path, resource });
  assert.is(second.queryOf(second.from), "resourceVersion=7&allowWatchBookmarks=true");
  assert.equal(watch.path.origins.counts, { custom: 1, aggregated: 0, unknown: 0 });
});

test("only the beginning of its OpenAPI is read", () => {
  const { watch, asks } = scene();
  const [ask] = asks();
  ask?.side?.sendHeaders([new Field(":status", "200"), json], false);
  ask?.say(crd.slice(0, 70));
  watch.path.settle();
  assert.equal([ask?.resetCode, watch.path.origins.counts.custom], [errorCode.CANCEL, 1]);
});

test("another server's watch stays what it is, whatever its versions say, and nothing is said of them", () => {
  for (const other of [titled("sample-apiserver"), "{}", undefined]) {
    const { watch, asked, asks } = scene(other === undefined ? proxied : ok);
    assert.is(asks().length, other === undefined ? 0 : 1, "a head that two apiservers wrote says enough");
    asks()[0]?.answer(200, other, [json]);
    watch.path.settle();
    asked.say(`{"type":"MODIFIED","object":{"kind":"X","metadata":{"resourceVersion":"3"}}}\n`);
    watch.path.settle();
    assert.equal(watch.path.origins.counts, { custom: 0, aggregated: 1, unknown: 0 });
    assert.equal(Array.from(watch.path.migrations.watches.resources), []);
    watch.kill(watch.from);
    watch.advance(2000);
    assert.is(watch.to.asked.length, 0);
    assert.equal([watch.ear.isEnded, watch.ear.resetCode], [true, undefined]);
    assert.equal(watch.entries("event.version_regressed"), []);
  }
});

test("an API that was a CRD's is another server's from the first head that says so", () => {
  const { watch, asks } = scene();
  asks()[0]?.answer(200, crd, [json]);
  watch.path.settle();
  const second = new PlayedWatch({ path: watch.path, resource, client: watch.client });
  second.serve(second.from, "+8a", proxied);
  assert.is(watch.path.origins.counts.aggregated, 1);
  watch.kill(watch.from);
  watch.advance(2000);
  assert.is(watch.to.asked.length, 0);
});

test("events out of order before it is known are no proof of anything; such a watch is not resumed", () => {
  const { watch, asked, asks } = scene();
  asked.say(`{"type":"MODIFIED","object":{"kind":"X","metadata":{"resourceVersion":"3"}}}\n`);
  watch.path.settle();
  asks()[0]?.answer(200, crd, [json]);
  watch.path.settle();
  assert.equal(watch.entries("event.version_regressed"), []);
  watch.kill(watch.from);
  watch.advance(2000);
  assert.is(watch.to.asked.length, 0);
});

test("a CRD's OpenAPI that is not there yet is asked for again, and again after longer", () => {
  const { watch, asks } = scene();
  let pauseMs: number = watchLimits.originPauseMs;
  for (let times = 1; times < 5; times += 1) {
    assert.is(asks().length, times);
    asks().at(-1)?.answer(404, "");
    watch.advance(pauseMs - 10);
    assert.is(asks().length, times);
    watch.advance(20);
    pauseMs *= 2;
  }
  asks().at(-1)?.answer(200, crd, [json]);
  watch.path.settle();
  assert.is(watch.path.origins.counts.custom, 1);
});

test("a client that may not read it is asked once; the next that watches may", () => {
  const { watch, asks } = scene();
  asks()[0]?.answer(403, "{}", [json]);
  watch.advance(60_000);
  assert.is(asks().length, 1);
  const other = watch.path.client();
  other.downstream.client.bind(watch.client.downstream.client.backend ?? "");
  const second = new PlayedWatch({ path: watch.path, resource, client: other });
  second.serve(second.from, "+8a");
  assert.is(asks().length, 2);
  asks()[1]?.answer(200, crd, [json]);
  watch.path.settle();
  assert.is(watch.path.origins.counts.custom, 1, "and both are moved now");
  watch.kill(watch.from);
  assert.is(watch.to.asked.length, 2);
});

/** The events of one replica on one stream. Each replica has its own version counter and its own order of events. */
function replay(random: Random): string {
  const from = random.below(1000) + 1;
  const words = Array.from({ length: random.below(6) }, (_, index) => {
    const version = from + (random.chance(0.8) ? index : -random.below(3));
    return `${random.pick(["+", "~", "-"])}${version}${random.pick(["a", "b"])}`;
  });
  return words.join(" ");
}

test("replicas that count for themselves: each client gets one replica's stream, whole and from no other, in 300 runs", () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = seeded(seed);
    const { watch, asked, asks } = scene(random.chance(0.5) ? proxied : ok);
    const answer = (): void =>
      asks()
        .at(-1)
        ?.answer(random.pick([200, 404, 403]), titled("other"), [json]);
    let said = "+8a";
    const faults = [
      () => watch.kill(watch.from),
      () => asked.fail(),
      () => goAway(watch.from),
      () => blackHole(watch.from),
      () => watch.kill(watch.to),
      () => asked.say("", true),
    ] as const;
    const faultAt = random.below(4);
    for (let step = 0; step < 4; step += 1) {
      if (step === 1) answer();
      if (step === faultAt) random.pick(faults)();
      const words = replay(random);
      const mayArrive = asked.side !== undefined && !watch.ear.isEnded;
      if (step < faultAt && mayArrive) {
        asked.say(linesOf(words));
        said = `${said} ${words}`;
      }
      watch.path.settle();
      watch.advance(random.below(3000));
    }
    const text = `seed ${seed}`;
    assert.is(watch.ear.body, linesOf(said), text);
    const isOther = ({ request }: Asked): boolean => request.path.includes("watch=true");
    assert.is(watch.to.asked.filter(isOther).length, 0, text);
    assert.is(watch.from.asked.filter(isOther).length, 1, text);
    assert.equal([watch.entries("event.version_regressed"), watch.entries("cache.stalled")], [[], []], text);
  }
});

test("many watches of one API ask once", () => {
  const path = new PlayedPath(["a", "b"]);
  const { watch, asks } = scene(ok, path);
  for (let count = 0; count < 5; count += 1) {
    const more = new PlayedWatch({ path, resource, client: watch.client });
    more.serve(more.from, "+8a");
  }
  assert.is(asks().length, 1);
});

test.run();
