/**
 * What /livez and /readyz answer, in the words of kube-apiserver's own (k8s.io/apiserver, healthz.go), which scripts
 * read.
 */

/** One check of a probe. Its reason is for the journal: whoever asks is not told. */
export type Readiness = { readonly name: string; readonly ok: boolean; readonly reason?: string };

export type Answer = { readonly ok: boolean; readonly text: string };

type Standing = {
  /** Of each backend, cluster by cluster. */
  readonly clusters: readonly (readonly string[])[];
  /** Listeners that have no port. */
  readonly lost: readonly string[];
  readonly isDraining: boolean;
  /** Why new clients are refused (proxy/intake.ts), or "". */
  readonly refusing: string;
};

/** What /readyz checks: could a new client be served here, and for how long? */
export function readinessOf({ clusters, lost, isDraining, refusing }: Standing): readonly Readiness[] {
  // Whoever comes for another cluster would lose by it if one without backends failed the probe.
  const states = clusters.flat();
  const ready = states.filter((state) => state === "ready").length;
  return [
    { name: "backends", ok: ready > 0, reason: `${ready} of ${states.length} ready` },
    { name: "config", ok: true },
    { name: "listeners", ok: lost.length === 0, reason: `not bound: ${lost.join()}` },
    { name: "intake", ok: refusing === "", reason: refusing },
    { name: "draining", ok: !isDraining, reason: "the proxy is stopping" },
  ];
}

/** `probe` is its name, `query` what stands behind the `?`. */
export function answerTo(probe: string, query: string, checks: readonly Readiness[]): Answer {
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

/** Why a probe fails, for the journal; "" when it does not. */
export function complaintOf(checks: readonly Readiness[]): string {
  return checks
    .filter(({ ok }) => !ok)
    .map(({ name, reason }) => `${name}: ${reason ?? "failed"}`)
    .join("; ");
}
