/** Faults in how backends are probed and judged. */
import { type Defect, defect } from "../defect.ts";

export const health: readonly Defect[] = [
  defect(
    "each probe of a backend that stays dead is evidence of flapping",
    { file: "ops/incidents/backend-fold.ts", find: " && course.fellAt === at", replace: "" },
    ["ops/incidents/backend-fold", "three falls in two minutes"],
  ),
  defect(
    "findings about two addresses count as equal",
    {
      file: "ops/incidents/incident.ts",
      find: "(?= ?(?:ms|s|h|days|times|requests|watches)\\b)",
      replace: "",
    },
    ["ops/incidents/incident", "of equal findings"],
  ),
  defect(
    "a few late answers blind the deadline",
    {
      file: "health/rtt.ts",
      find: "Math.min(8 * this.quantile(0.99), 16 * this.quantile(0.5))",
      replace: "8 * this.quantile(0.99)",
    },
    ["health/rtt", "holes do not blind"],
  ),
  defect(
    "a near backend has no time at all",
    { file: "health/rtt.ts", find: "Math.max(floor.suspectAfterMs, farMs)", replace: "farMs" },
    ["health/rtt", "a backend next door keeps the floors"],
  ),
  defect(
    "a stranger's certificate is trusted",
    { file: "health/backend.ts", find: '  { isUntrusted: true, verdict: "suspect" },\n', replace: "" },
    ["health/backend", "a certificate that is not to be trusted"],
  ),
  defect(
    "a backend that flaps comes back as soon as ever",
    {
      file: "health/backend.ts",
      find: "rise * 2 ** Math.min(4, Math.max(0, ejections - 1))",
      replace: "rise * 2 ** Math.min(0, ejections)",
    },
    ["health/backend", "back in rotation after good answers"],
  ),
  defect(
    "old falls are held against it for ever",
    {
      file: "health/backend.ts",
      find: "before.ejections > 0 && at - before.ejectedAt <= healthLimits.strikeMs",
      replace: "before.ejections > 0",
    },
    ["health/backend", "falls that are far apart"],
  ),
  defect(
    "a /readyz that hangs says nothing",
    {
      file: "health/backend.ts",
      find: 'readiness: ["failing", "hanging"], verdict: "suspect"',
      replace: 'readiness: ["failing"], verdict: "suspect"',
    },
    ["health/backend", "the table in words"],
  ),
  defect(
    "one socket at a time is tried in a hole",
    {
      file: "health/prober.ts",
      find: 'isUrgent(facts) && facts.fresh !== "answer" ? healthLimits.probesAtOnce : 1',
      replace: "isUrgent(facts) ? 1 : 1",
    },
    ["health/prober", "while upstream connections are silent it asks every 250 ms"],
  ),
  defect(
    "silence of a socket that began before the last answer arrived counts against the backend",
    {
      file: "health/backend.ts",
      find: 'what === "silence" ? Math.max(arrivedAt, packetsLostAt) : answeredAt',
      replace: "answeredAt",
    },
    ["health/backend", "whichever began first"],
  ),
  defect(
    "the log tells of a socket that met silence in a hole that is over",
    {
      file: "health/backends.ts",
      find: 'evidence.kind === "fresh" && !isOvertaken(before, evidence)',
      replace: 'evidence.kind === "fresh"',
    },
    ["health/backends", "that another has overtaken"],
  ),
  defect(
    "a backend without connections is never found to answer again",
    {
      file: "health/backend.ts",
      find: "!isAnswering(before) && isAnswering(latest)",
      replace: "isMute(before) && !isMute(latest)",
    },
    ["health/backend", "answers again from then on"],
  ),
  defect(
    "a backend without connections that met silence is probed at leisure",
    {
      file: "health/backend.ts",
      find: "isSilent(facts) || isUnreached(facts) ||",
      replace: "isSilent(facts) ||",
    },
    ["health/prober", "as often as one whose connections are silent"],
  ),
  defect(
    "a probe that hangs overrules one that was asked later and answered",
    {
      file: "health/prober.ts",
      find: "else if ((run.askedAt ?? now) < this.#lastReadyzAnswerAt) return;",
      replace: "",
    },
    ["health/prober", "is overruled by one that was answered since"],
  ),
  defect(
    "large packets are taken for lost on a path that loses small ones as well",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "if (this.#isLossy) return false;",
      replace: "",
    },
    ["flows/large-packets", "loses small packets as well"],
  ),
  defect(
    "a handshake that stops is waited for until the probe's time is over",
    {
      file: "health/prober.ts",
      find: "        this.#awaitHandshake(run);\n",
      replace: "",
    },
    ["flows/large-packets", "the same reason within 1.5 s"],
  ),
  defect(
    "a process that stands still has lost large packets",
    {
      file: "health/prober.ts",
      find: "|| !areLost || !doSmallPass",
      replace: "|| !areLost",
    },
    ["flows/large-packets", "a process that stands still"],
  ),
  defect(
    "one handshake that stops is enough to take large packets for lost",
    {
      file: "health/prober.ts",
      find: "const areLost = tried.every(",
      replace: "const areLost = tried.some(",
    },
    ["health/prober-packets", "while one handshake of three passes"],
  ),
  defect(
    "an unanswered new socket shows that the backend is dead, although small packets pass",
    {
      file: "health/backend.ts",
      find: "Math.max(arrivedAt, packetsLostAt) :",
      replace: "arrivedAt :",
    },
    ["flows/large-packets", "every connection waits for a lost large packet"],
  ),
  defect(
    "a silence of all is not seen where backends have no connections",
    {
      file: "health/backend.ts",
      find: "isMute(facts) || isUnreached(facts)",
      replace: "isMute(facts)",
    },
    ["health/backends", "without connections are silent as well"],
  ),
  defect(
    "it is asked as often as anything goes wrong",
    {
      file: "health/prober.ts",
      find: "if (now - this.#askedAt < healthLimits.urgentProbeMs) return;",
      replace: "",
    },
    ["health/prober", "when something is wrong it asks now"],
  ),
  defect(
    "an apiserver that boots and refuses everybody is ready",
    {
      file: "health/backend.ts",
      find: "if (mayBoot && at - since < healthLimits.forbiddenMs)",
      replace: "if (mayBoot && at < 0)",
    },
    ["health/backend", "is not ready while it answers 403"],
  ),
  defect(
    "one that may never be asked again is never ready",
    {
      file: "health/backend.ts",
      find: "if (mayBoot && at - since < healthLimits.forbiddenMs)",
      replace: "if (mayBoot)",
    },
    ["health/backend", "nothing but 403 is ready in the end"],
  ),
  defect(
    "one that may not be asked any more is taken for one that boots",
    {
      file: "health/backend.ts",
      find: '(facts.state !== "ready" || facts.doubtedAt > facts.readinessAt)',
      replace: "true",
    },
    ["health/backend", "a 403 of one that is ready says nothing against it"],
  ),
  defect(
    "reads of aggregated objects that hang are held against the apiserver",
    {
      file: "kube/request-info.ts",
      find: 'return isBuiltIn(info.group) && info.resource !== "componentstatuses";',
      replace: "return info.isResource;",
    },
    ["flows/slow-reads", "reads of what another server answers say nothing of the apiserver"],
  ),
  defect(
    "a metrics server that hangs makes the proxy impatient with /readyz",
    {
      file: "proxy/request/hedge.ts",
      find: "if (context.isOwn) this.",
      replace: "if (context !== undefined) this.",
    },
    ["flows/slow-reads", "reads of what another server answers say nothing of the apiserver"],
  ),
  defect(
    "a slow metrics server makes the proxy patient with the apiserver",
    {
      file: "kube/request-info.ts",
      find: "info.isResource && isOwnResource(info)",
      replace: "info.isResource",
    },
    ["flows/slow-reads", "a slow metrics server does not make the proxy more patient"],
  ),
  defect(
    "an apiserver whose lease ran out is gone at once, though it answers",
    {
      file: "ops/discovery/discovery.ts",
      find: "if (kept.length === 0) return listed;",
      replace: "if (kept.length >= 0) return listed;",
    },
    ["ops/discovery/discovery", "listed no more and answers stays for a while"],
  ),
  defect(
    "an apiserver that was taken out stays as long as it answers",
    { file: "ops/discovery/discovery.ts", find: "(isInTime || !isAnswering) && answers", replace: "answers" },
    ["ops/discovery/discovery", "it stays for so long only"],
  ),
  defect(
    "all are asked in step",
    { file: "health/prober.ts", find: " * (0.9 + 0.2 * this.#parts.random())", replace: "" },
    ["health/prober", "what falls in step"],
  ),
  defect(
    "a changed PING interval waits for the end of the old interval",
    {
      file: "upstream/pool/keepalive.ts",
      find: "this.#tickAt = Math.min(this.#tickAt, now + times.intervalMs);",
      replace: "",
    },
    ["flows/changed-settings", "health.ping.interval is the time between PINGs"],
  ),
  defect(
    "a changed probe interval waits for the end of the old interval",
    {
      file: "health/prober.ts",
      find: "if (leftMs <= times.intervalMs || this.#isStopped) return;",
      replace: "if (leftMs > 0) return;",
    },
    ["flows/changed-settings", "health.probe.interval is the time between probes"],
  ),
  defect(
    "a backend that comes after a reload has the settings of the start",
    {
      file: "proxy/cluster/data-path.ts",
      find: "const { connections, ping } = this.#settings;",
      replace: "const { connections, ping } = options;",
    },
    ["flows/changed-settings", "a backend that is added after the reload has the new settings"],
  ),
  defect(
    "the origin of open watches stays when the configuration names their group",
    { file: "kube/api-origin.ts", find: "Object.assign(origin, now);", replace: "" },
    ["flows/changed-settings", "watches.customResourceAPIGroups makes the open watches of the group movable"],
  ),
  defect(
    "the time of detection begins when the detector finds the failure",
    {
      file: "health/backends.ts",
      find: 'if (from === "ready") known.lostAt = now - silentMs;',
      replace: 'if (from === "ready") known.lostAt = now;',
    },
    ["flows/measured-times", "the time of detection runs from the last sign of life"],
  ),
  defect(
    "a write that changes nothing counts as delivered at once",
    {
      file: "watch/cache/write-delays.ts",
      find: "compareVersions(version, newest) <= 0 || ",
      replace: "",
    },
    ["flows/watch-delay", "a write that changes nothing"],
  ),
  defect(
    "a backend is called late because a slow client does not take its events",
    {
      file: "watch/detectors/watch-delay.ts",
      find: "progress.lagMs(now) >= limitMs && this.#isProven(progress, now)",
      replace: "progress.lagMs(now) >= limitMs",
    },
    ["flows/watch-delay", "a slow client"],
  ),
];
