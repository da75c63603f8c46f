/**
 * node plain.ts CONFIG: the proxy with nobody looking. The cluster and its listeners are main.ts's own; no port for an
 * operator is opened, nothing reads the journal (no log, metrics or incidents), and nobody asks who talks or who holds
 * the locks. What stays are counters on the path itself: they are fields of what is there anyhow.
 */
import { wallClock } from "../../../src/clock.ts";
import { loadConfig } from "../../../src/config.ts";
import { Failure } from "../../../src/failure.ts";
import { Journal } from "../../../src/journal.ts";
import { Caller } from "../../../src/ledger/caller.ts";
import { noSubject } from "../../../src/ledger/subject.ts";
import { isProblems, lineOf } from "../../../src/problem.ts";
import { Cluster } from "../../../src/proxy/cluster.ts";
import { Listeners } from "../../../src/proxy/listeners.ts";

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

const config = loadConfig(process.argv[2] ?? "");
if (isProblems(config)) fail(config.map(lineOf).join("\n"));
const cluster = Cluster.of(config, new Journal(wallClock));
if (cluster instanceof Failure) fail(cluster.message);
const everybody = new Caller({ subject: noSubject, agent: "unknown", address: "" }, wallClock.now());
const { talk } = cluster.path;
talk.callerOf = () => everybody;
talk.asked = () => {};
talk.copyFor = () => undefined;
const listeners = new Listeners(cluster.entry, config.health.keepalive);
const failure = (await cluster.load()) ?? (await listeners.reconcile(config.listeners));
if (failure !== undefined) fail(failure.message);
cluster.start();
