/**
 * The configuration in the structure of the file, with defaults; durations are still text. Generated from
 * watchkeeper.v1alpha2.json by `node test/ops/config/reference-page.test.ts --write`.
 */

export type Written = {
  readonly metadata: {
    readonly name: string;
  };
  readonly listeners: readonly WrittenListener[];
  readonly clusters: readonly WrittenCluster[];
  readonly zone?: string;
  readonly workers: number | string;
  readonly watches: {
    readonly alwaysRequestBookmarks: boolean;
    readonly staleReadGuard: "Observe" | "Enforce" | "Disabled";
    readonly aggregatedAPIGroups: readonly string[];
    readonly customResourceAPIGroups: readonly string[];
  };
  readonly health: {
    readonly ping: {
      readonly interval: string;
      readonly suspectAfter: string;
      readonly deadAfter: string;
      readonly deadAfterWhenAllSilent: string;
    };
    readonly probe: {
      readonly path: string;
      readonly interval: string;
      readonly timeout: string;
    };
    readonly tcpKeepalive: {
      readonly idleTime: string;
      readonly interval: string;
      readonly probes: number;
    };
  };
  readonly drain: {
    readonly shutdownDelay: string;
    readonly timeout: string;
    readonly handoverDirectory?: string;
  };
  readonly admin: {
    readonly address: string;
    readonly metricsAddress: string;
    readonly probeThread: boolean;
    readonly metrics: {
      readonly authorization: {
        readonly mode: "AlwaysAllow" | "Webhook";
        readonly cluster?: string;
        readonly kubeconfigFile?: string;
        readonly audiences: readonly string[];
      };
      readonly tls?: {
        readonly certFile: string;
        readonly keyFile: string;
        readonly reloadInterval: string;
      };
    };
    readonly replicas?: {
      readonly addresses?: readonly string[];
      readonly hostname?: string;
      readonly port?: number;
      readonly caFile?: string;
      readonly serverName?: string;
    };
    readonly readOnly: boolean;
    readonly authorization: {
      readonly mode: "AlwaysAllow" | "Webhook";
      readonly cluster?: string;
      readonly kubeconfigFile?: string;
      readonly audiences: readonly string[];
    };
    readonly tls?: {
      readonly certFile: string;
      readonly keyFile: string;
      readonly reloadInterval: string;
    };
  };
  readonly logging: {
    readonly level: "Error" | "Warning" | "Info" | "Debug";
    readonly format: "JSON" | "Text";
    readonly accessLog: "None" | "Errors" | "LongRunning" | "All";
  };
  readonly tracing?: {
    readonly endpoint: string;
    readonly samplingRatePerMillion: number;
  };
};

export type WrittenServedHost = {
  readonly cluster?: string;
  readonly serverNames: readonly string[];
  readonly tls: {
    readonly certFile: string;
    readonly keyFile: string;
    readonly reloadInterval: string;
    readonly clientCAFile?: string;
  };
  readonly identity: {
    readonly clientCerts: "Reject" | "FrontProxy" | "Impersonate" | "ActAsImpersonator";
  };
};

export type WrittenListener = {
  readonly name: string;
  readonly address: string;
  readonly mode: "HTTP" | "Passthrough";
  readonly cluster?: string;
  readonly routes?: readonly {
    readonly cluster?: string;
    readonly serverNames?: readonly string[];
    readonly backends?: readonly string[];
  }[];
  readonly tls?: {
    readonly certFile: string;
    readonly keyFile: string;
    readonly reloadInterval: string;
    readonly clientCAFile?: string;
  };
  readonly identity: {
    readonly clientCerts: "Reject" | "FrontProxy" | "Impersonate" | "ActAsImpersonator";
  };
  readonly hosts: readonly WrittenServedHost[];
  readonly trustedForwarderCIDRs: readonly string[];
  readonly proxyProtocol: {
    readonly mode: "Disabled" | "Optional" | "Required";
    readonly trustedCIDRs: readonly string[];
  };
  readonly maxConnectionsPerSource: number;
  readonly reusePort: boolean;
};

export type WrittenCluster = {
  readonly name: string;
  readonly backends?: readonly WrittenBackend[];
  readonly discovery?: {
    readonly type: "DNS" | "File" | "EndpointSlice" | "Lease";
    readonly interval: string;
    readonly hostname?: string;
    readonly port?: number;
    readonly file?: string;
    readonly kubeconfigFile?: string;
    readonly fallback?: WrittenBackend;
  };
  readonly tls?: {
    readonly caFile: string;
    readonly reloadInterval: string;
    readonly serverName?: string;
    readonly frontProxy?: {
      readonly certFile: string;
      readonly keyFile: string;
      readonly reloadInterval: string;
      readonly usernameHeaders: readonly string[];
      readonly uidHeaders: readonly string[];
      readonly groupHeaders: readonly string[];
      readonly extraHeaderPrefixes: readonly string[];
    };
    readonly impersonator?: {
      readonly certFile: string;
      readonly keyFile: string;
      readonly reloadInterval: string;
    };
  };
  readonly connectionPool: {
    readonly maxStreamsPerConnection: number;
    readonly minIdleConnections: number;
    readonly perClient: boolean;
  };
  readonly avoidUnreachableAPIs: boolean;
  readonly proxyProtocol?: {
    readonly version: "V1" | "V2";
  };
  readonly shield: {
    readonly enabled: boolean;
    readonly queueTimeout: string;
    readonly exemptGroups: readonly string[];
  };
  readonly limits?: readonly WrittenLimit[];
};

export type WrittenLimit = {
  readonly name: string;
  readonly all?: boolean;
  readonly users?: readonly string[];
  readonly groups?: readonly string[];
  readonly userAgents?: readonly string[];
  readonly sourceCIDRs?: readonly string[];
  readonly verbs?: readonly string[];
  readonly resources?: readonly string[];
  readonly rate?: string;
  readonly burst?: number;
  readonly maxInFlight?: number;
  readonly scope?: "Replica" | "AllReplicas";
};

export type WrittenBackend = {
  readonly name: string;
  readonly url: string;
  readonly weight: number;
  readonly zone?: string;
};
