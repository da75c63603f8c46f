/**
 * node bench/write-delay.ts
 *
 * Measures what it costs the proxy to measure the time from a write to its event on the watches of three backends:
 * microseconds of CPU time for a write, and the share of a core for 1,000 writes a second. If the proxy does not
 * measure this delay, none of this code runs. The result is the best of several rounds.
 */
import { wallClock } from "../src/base/clock.ts";
import { Field } from "../src/h2/core/field.ts";
import { classify } from "../src/kube/request-info.ts";
import { writeTapFor } from "../src/proxy/observe/write-tap.ts";
import { type CacheProgress, CacheTracker } from "../src/watch/cache/cache-progress.ts";
import { watchLimits } from "../src/watch/limits.ts";
import { field, protobufMetadata } from "../test/support/watch-bytes.ts";

const rounds = 9;
const writesOfRound = 20_000;
const perSecond = 1000;
const backends = ["cp-1", "cp-2", "cp-3"];
const target = "/api/v1/namespaces/default/pods/p/status";

const metadata = {
  name: "coredns-7d764666f9-x2k4l",
  namespace: "default",
  uid: "0c4ee1f3-8d0c-4b0e-9a37-5e1f5b1f7a10",
};

function json(version: number): Buffer {
  const object = {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { ...metadata, resourceVersion: String(version) },
  };
  return Buffer.from(JSON.stringify({ ...object, spec: "x".repeat(2000) }));
}

function protobuf(version: number): Buffer {
  const raw = field(1, protobufMetadata({ ...metadata, resourceVersion: String(version) }));
  const type = field(1, Buffer.concat([field(1, "v1"), field(2, "Pod")]));
  return Buffer.concat([
    Buffer.from("k8s\0"),
    type,
    field(2, Buffer.concat([raw, field(2, "x".repeat(2000))])),
  ]);
}

const forms = [
  { name: "json", contentType: "application/json", body: json },
  { name: "protobuf", contentType: "application/vnd.kubernetes.protobuf", body: protobuf },
];

let version = 1_000_000;

function showTo(watched: readonly CacheProgress[], shown: number, now: number): void {
  for (const cache of watched) cache.showEvent(String(shown), now);
}

for (const { name, contentType, body } of forms) {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    const clock = { ...wallClock, now: () => wallClock.now() + watchLimits.sightMs };
    const caches = new CacheTracker();
    const watched = backends.map((backend) => caches.ofScope(backend, "/pods "));
    for (const cache of watched) cache.join(true, wallClock.now() - watchLimits.sightMs);
    const head = [new Field(":status", "200"), new Field("content-type", contentType)];
    const bodies = Array.from({ length: writesOfRound }, () => body((version += 1)));
    const info = classify("PUT", target);
    const startedAt = process.cpuUsage();
    for (const [at, bytes] of bodies.entries()) {
      const tap = writeTapFor({ clock, caches }, { info, target }, false);
      tap?.answered("", head);
      tap?.read(bytes, 0, bytes.length);
      showTo(watched, version - writesOfRound + 1 + at, clock.now());
    }
    const { user, system } = process.cpuUsage(startedAt);
    best = Math.min(best, (user + system) / writesOfRound);
    const measured = caches.writeDelays.histograms.get("cp-1")?.get("")?.count ?? 0;
    if (measured !== writesOfRound) throw new Error(`${measured} of ${writesOfRound} writes were measured`);
  }
  const share = (best * perSecond) / 10_000;
  console.info(
    `${name}: ${best.toFixed(2)} µs a write, ${share.toFixed(2)} % of a core at ${perSecond} writes/s`,
  );
}
