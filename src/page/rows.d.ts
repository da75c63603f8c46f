/** The JSON API's responses, as far as the page reads them (docs/admin-api.md). */

export type List<Row> = {
  readonly at: string;
  readonly total: number;
  readonly matching: number;
  readonly offset: number;
  readonly items: readonly Row[];
};

export type Asker = {
  readonly client: string;
  readonly agent: string;
  readonly subject: string;
  readonly subjectSource: string;
  readonly pod: string;
  readonly node: string;
};

export type Evidence = {
  readonly at: string;
  readonly detector: string;
  readonly value: number;
  readonly threshold: number;
  readonly unit: string;
  readonly text: string;
  readonly auditId: string;
};

export type Incident = {
  readonly id: number;
  readonly kind: string;
  readonly severity: "critical" | "warning";
  readonly state: "active" | "ended";
  readonly subject: string;
  readonly backend: string;
  readonly summary: string;
  readonly startedAt: string;
  readonly detectedAt: string;
  readonly detectionMs: number;
  readonly endedAt: string | null;
  readonly durationMs: number;
  readonly resolution: string;
  readonly impact: Readonly<Record<string, number>>;
  readonly affected: { readonly count: number; readonly names: readonly string[] };
  readonly evidence: readonly Evidence[];
  readonly evidenceOmitted: number;
};

export type Change = {
  readonly at: string;
  readonly from: string;
  readonly to: string;
  readonly detector: string;
  readonly valueMs: number;
  readonly limitMs: number;
  readonly reason: string;
};

export type CertificateRow = {
  readonly purpose: string;
  readonly name: string;
  readonly notAfter: string | null;
  readonly leftMs: number | null;
  readonly level: string;
  readonly refused: string;
};

export type Backend = {
  readonly name: string;
  readonly address: string;
  readonly state: string;
  readonly since: string | null;
  readonly sinceAgeMs: number | null;
  readonly detector: string;
  readonly reason: string;
  readonly pingP99Ms: number;
  readonly suspectMs: number;
  /** True if an operator drains it. */
  readonly isDrained: boolean;
  readonly upstreamConnections: readonly {
    readonly kind: string;
    readonly open: number;
    readonly streams: number;
  }[];
  readonly requests: { readonly watches: number; readonly plain: number; readonly longRunning: number };
  readonly stalledResources: readonly string[];
  readonly certificates: readonly CertificateRow[];
  readonly history: readonly Change[];
};

export type Watch = Asker & {
  readonly auditId: string;
  readonly resource: string;
  readonly path: string;
  readonly backend: string;
  readonly state: string;
  readonly ageMs: number;
  readonly resourceVersion: string;
  readonly lastEventAgeMs: number | null;
  readonly lastBookmarkAgeMs: number | null;
  readonly events: number;
  readonly moves: number;
  readonly session: string;
};

export type ClientRow = Asker & {
  /** "" if there is only one cluster. */
  readonly cluster: string;
  readonly lastSeenAgeMs: number;
  readonly requests: number;
  readonly active: number;
  readonly watches: number;
  readonly relists: number;
  readonly errors: number;
  readonly bytes: number;
  readonly anomalies: readonly string[];
};

export type Lease = {
  readonly cluster: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly holder: string;
  readonly state: string;
  readonly renewedAgeMs: number | null;
  readonly renewedBy: Asker | null;
  readonly verdict: string;
  readonly reason: string;
};

/** Counters since the process began; the page draws their rates. */
export type Stats = {
  readonly at: string;
  readonly name: string;
  readonly version: string;
  readonly uptimeMs: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly watchEvents: number;
  readonly cpuMs: number;
  readonly eventLoopDelayMs: number;
  readonly rssBytes: number;
};
