/**
 * node plain.ts CONFIG
 *
 * Watchkeeper without observers, the parts that only record what the proxy does. The cluster and its listeners are
 * those of main.ts. No admin port is open, nothing reads the journal (no log, metrics or incidents), and no ledger
 * records callers or leases. Counters on the data path stay, because they are fields of objects that exist anyway.
 */
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { loadConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";
import { Caller } from "../../../src/ops/ledger/caller.ts";
import { noSubject } from "../../../src/ops/ledger/subject.ts";
import { Clusters } from "../../../src/proxy/cluster/clusters.ts";
import { Intake, mostSockets } from "../../../src/proxy/downstream/intake.ts";
import type { Gate } from "../../../src/proxy/downstream/listen.ts";
import { Listeners } from "../../../src/proxy/downstream/listeners.ts";

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

const config = loadConfig(process.argv[2] ?? "");
if (isProblems(config)) fail(config.map(lineOf).join("\n"));
const journal = new Journal(wallClock);
const clusters = Clusters.of(config, journal);
if (clusters instanceof Failure) fail(clusters.message);
const everybody = new Caller({ subject: noSubject, agent: "unknown", address: "" }, wallClock.now());
for (const {
  path: { ledgerTap },
} of clusters.present) {
  ledgerTap.callerOf = () => everybody;
  ledgerTap.asked = () => {};
  ledgerTap.copyFor = () => undefined;
}
const gateOf = (name: string): Gate => clusters.gateOf(name);
const intake = new Intake({ clock: wallClock, most: mostSockets(), isShort: () => false });
const listeners = new Listeners({
  clock: wallClock,
  journal,
  gateOf,
  intake,
  keepalive: () => config.health.tcpKeepalive,
});
const failure = (await clusters.load()) ?? (await listeners.reconcile(config.listeners));
if (failure !== undefined) fail(failure.message);
clusters.start();
