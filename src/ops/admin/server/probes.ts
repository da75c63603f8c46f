/** Formats responses of /livez and /readyz like kube-apiserver (healthz.go), because scripts parse that format. */

/** One check of a probe. `reason` explains a failure; it goes to the journal, but not into the response. */
export type Readiness = { readonly name: string; readonly ok: boolean; readonly reason?: string };

export type ProbeReply = { readonly ok: boolean; readonly text: string };

type ReadinessFacts = {
  /** The states of each cluster's backends. */
  readonly clusters: readonly (readonly string[])[];
  /** Names of the listeners that are not open yet, or whose port another process has taken. */
  readonly lost: readonly string[];
  readonly isDraining: boolean;
  /** Why new clients are refused (proxy/downstream/intake.ts); "": they are accepted. */
  readonly refusing: string;
  /**
   * Clusters whose listeners assert identities with a certificate that no backend has proven since the start; undefined:
   * no listener asserts identities.
   */
  readonly unproven?: readonly string[] | undefined;
  /** Number of workers that serve clients; undefined: the process has no workers and serves clients itself. */
  readonly servingWorkers?: number | undefined;
};

/** Returns the checks of /readyz. All of them pass if this process can serve new clients. */
export function readinessOf(facts: ReadinessFacts): readonly Readiness[] {
  const { clusters, lost, isDraining, refusing, unproven, servingWorkers } = facts;
  // One ready backend of any cluster is enough, because a failed cluster must not stop the service for clients of other
  // clusters.
  const states = clusters.flat();
  const ready = states.filter((state) => state === "ready").length;
  return [
    { name: "backends", ok: ready > 0, reason: `${ready} of ${states.length} ready` },
    { name: "config", ok: true },
    { name: "listeners", ok: lost.length === 0, reason: `not bound: ${lost.join()}` },
    // A check of its own, because keepalived leaves out "intake" (docs/restart.md).
    ...(servingWorkers === undefined
      ? []
      : [{ name: "workers", ok: servingWorkers > 0, reason: "no worker serves" }]),
    ...(unproven === undefined
      ? []
      : [{ name: "identity", ok: unproven.length === 0, reason: `not proven: ${unproven.join()}` }]),
    { name: "intake", ok: refusing === "", reason: refusing },
    { name: "draining", ok: !isDraining, reason: "the proxy is stopping" },
  ];
}

/** Returns the response to a probe. `query` is the text after the `?`. */
export function answerTo(probe: string, query: string, checks: readonly Readiness[]): ProbeReply {
  const asked = new URLSearchParams(query);
  const excluded = new Set(asked.getAll("exclude"));
  const lines = checks.map((check) => lineOf(check, excluded));
  const unknown = excluded.difference(new Set(checks.map(({ name }) => name)));
  if (unknown.size > 0) lines.push(warning([...unknown]));
  const ok = checks.every((check) => check.ok || excluded.has(check.name));
  if (!ok) return { ok, text: `${lines.join("")}${probe} check failed\n` };
  return { ok, text: asked.has("verbose") ? `${lines.join("")}${probe} check passed\n` : "ok" };
}

function lineOf({ name, ok }: Readiness, excluded: ReadonlySet<string>): string {
  if (excluded.has(name)) return `[+]${name} excluded: ok\n`;
  return ok ? `[+]${name} ok\n` : `[-]${name} failed: reason withheld\n`;
}

function warning(unknown: readonly string[]): string {
  const names = unknown.toSorted().map((name) => JSON.stringify(name));
  return `warn: some health checks cannot be excluded: no matches for ${names.join(",")}\n`;
}

/** Returns why a probe fails, for the journal; "" if it succeeds. */
export function complaintOf(checks: readonly Readiness[]): string {
  return checks
    .filter(({ ok }) => !ok)
    .map(({ name, reason }) => `${name}: ${reason ?? "failed"}`)
    .join("; ");
}
