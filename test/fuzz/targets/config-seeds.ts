/** Configurations that are valid, and ones that each break one rule: seeds for mutations. */
const head = "apiVersion: watchkeeper.dev/v1alpha2\nkind: WatchkeeperConfiguration\n";
const serving = "certFile: c, keyFile: k";
const plain = 'listeners: [{name: a, address: "127.0.0.1:1"}]\n';
const one = 'clusters: [{name: x, backends: [{name: b, url: "https://h:1"}], tls: {caFile: c}}]\n';

/** A TLS listener. `more` adds members to it, `tls` to its tls section. */
const secure = (more: string, tls = ""): string =>
  `listeners: [{name: a, address: "0.0.0.0:1", tls: {${serving}${tls}}${more}}]\n`;
/** The only cluster. `more` adds members to it, `tls` to its tls section. */
const cluster = (more: string, tls = ""): string =>
  `clusters: [{name: x, backends: [{name: b, url: "https://h:1"}], tls: {caFile: c${tls}}${more}}]\n`;
const through = (more: string): string =>
  `listeners: [{name: a, address: "0.0.0.0:1", mode: Passthrough${more}}]\n`;
const found = (more: string): string => `clusters: [{name: x, discovery: {${more}}, tls: {caFile: c}}]\n`;
const several = (first: string, second: string): string =>
  `clusters: [{${first}backends: [{name: b, url: "https://h:1"}], tls: {caFile: c}}, {${second}backends: [{name: b, url: "https://i:1"}], tls: {caFile: c}}]\n`;

const wholes: readonly string[] = [
  secure(", identity: {clientCerts: FrontProxy}", ", clientCAFile: a") +
    cluster("", ", frontProxy: {certFile: f, keyFile: g, usernameHeaders: [X-U], groupHeaders: [X-G]}"),
  secure(", identity: {clientCerts: Impersonate}", ", clientCAFile: a") +
    cluster(
      ", connectionPool: {perClient: true}",
      ", serverName: s, impersonator: {certFile: f, keyFile: g}",
    ),
  secure(", identity: {clientCerts: ActAsImpersonator}", ", clientCAFile: a") +
    cluster("", ", impersonator: {certFile: f, keyFile: g}"),
  secure(`, hosts: [{serverNames: [X.example, "*.y"], tls: {${serving}}}]`) + one,
  secure(', trustedForwarderCIDRs: [10.0.0.0/8, "fd00::/8"], maxConnectionsPerSource: 3') + one,
  secure(", proxyProtocol: {mode: Required, trustedCIDRs: [10.0.0.0/8]}") +
    cluster(", proxyProtocol: {version: V2}"),
  secure(", cluster: x") + several("name: x, ", "name: y, "),
  through(", routes: [{serverNames: [s], cluster: x, backends: [b]}, {cluster: y}]") +
    several("name: x, ", "name: y, "),
  through("") + one,
  plain + found("type: DNS, name: h, port: 1, interval: 5s"),
  plain + found('type: File, file: f, fallback: {name: z, url: "https://z:1"}'),
  plain + found("type: EndpointSlice, kubeconfigFile: f"),
  plain + found("type: Lease"),
  'listeners: [{name: a, address: "[::1]:1"}]\nclusters: [{name: x, backends: [{name: b, url: "http://[::1]:2/"}], connectionPool: {maxStreamsPerConnection: 10, minIdleConnections: 2}}]\n',
  `${plain}${one}metadata: {name: n}\nwatches: {alwaysRequestBookmarks: true, staleReadGuard: Enforce}\nhealth: {ping: {interval: 1s, suspectAfter: 2s, deadAfter: 1m30s}, probe: {path: /x, interval: 1s, timeout: 1s}, tcpKeepalive: {idleTime: 15s, interval: 5s, probes: 3}}\ndrain: {shutdownDelay: 10ms, timeout: 1h}\nadmin: {address: "127.0.0.1:3", metricsAddress: "[::]:4", readOnly: true}\nlogging: {format: JSON, accessLog: All}\n`,
];

const broken: readonly string[] = [
  'listeners: [{name: a, address: "127.0.0.1:1"}, {name: a, address: "[::]:1"}]\n' + one,
  'listeners: [{name: a, address: "0.0.0.0:1"}, {name: b, address: "127.0.0.1:1"}]\n' + one,
  'listeners: [{name: a, address: "10.0.0.1:1"}]\nclusters: [{name: x, backends: [{name: b, url: "https://10.0.0.1:1"}], tls: {caFile: c}}]\n',
  `${plain}clusters: [{name: x, backends: [{name: b, url: "http://h:1"}, {name: b, url: "https://127.0.0.1:1"}]}]\n`,
  `${plain}clusters: [{name: x, backends: [{name: b, url: "https://h:1"}, {name: c, url: "https://h:1"}]}]\n`,
  `${plain}clusters: [{name: x, backends: []}]\n`,
  `${plain}clusters: [{}]\n`,
  plain,
  plain + one + several("", ""),
  plain + several("name: x, ", "name: x, "),
  `${secure(", cluster: y")}${several("name: x, ", "name: xx, ")}`,
  secure(", cluster: y") + one,
  secure(
    `, hosts: [{serverNames: [x], tls: {${serving}}}, {serverNames: [X], cluster: q, tls: {${serving}}}]`,
  ) + one,
  `listeners: [{name: a, address: "127.0.0.1:1", hosts: [{serverNames: [x], tls: {${serving}}}]}]\n${one}`,
  secure("", ", clientCAFile: a") + one,
  secure(", identity: {clientCerts: FrontProxy}") + one,
  secure(", identity: {clientCerts: Impersonate}", ", clientCAFile: a") + one,
  secure(", proxyProtocol: {mode: Optional}") + one,
  secure(", proxyProtocol: {trustedCIDRs: [10.0.0.0/8]}") + one,
  secure(", routes: [{}]") + one,
  through(`, tls: {${serving}}, trustedForwarderCIDRs: [10.0.0.0/8]`) +
    cluster(", connectionPool: {minIdleConnections: 0}"),
  `${through("")}clusters: [{name: x, backends: [{name: b, url: "http://127.0.0.1:2"}]}]\n`,
  through(", cluster: x, routes: [{}, {}, {serverNames: [s, s], backends: [nobody]}]") + one,
  plain + found("type: DNS, file: f"),
  plain + found("type: Lease, hostname: n"),
  `${plain}clusters: [{name: x, backends: [{name: b, url: "https://h:1"}], discovery: {type: File, file: f, fallback: {name: b, url: "http://z:1"}}}]\n`,
  `${plain}clusters: [{name: x, discovery: {type: Lease}, proxyProtocol: {version: V1}, tls: {caFile: c}}]\n`,
  `${plain}${one}health: {ping: {interval: 2s, suspectAfter: 1s, deadAfter: 1s}}\n`,
  `${plain}${one}health: {ping: {interval: 1000h}, probe: {path: x}, tcpKeepalive: {probes: 0}}\n`,
  `${plain}${one}health: {tcpKeepalive: {probes: 999999}}\nlogging: {accessLog: evrything, format: 3}\ndrain: soon\nadmin: {readOnly: no}\n`,
  `${plain}${one}metadata: {name: ""}\nlistners: []\nwatches: null\n`,
  `${plain}${one}metadata: {name: ${"n".repeat(300)}}\n`,
  `listeners: [${Array.from({ length: 70 }, (_, at) => `{name: a${at}, address: "127.0.0.1:${at}"}`).join(", ")}]\n${one}`,
  `listeners: []\n${one}`,
  `listeners: {name: a}\nclusters: [1]\n`,
  'listeners: [{address: nowhere}]\nclusters: [{name: x, backends: [{name: B_, url: "ftp://u:p@h"}]}]\n',
];

const noneOfOurs: readonly string[] = [
  "apiVersion: v1\nkind: Pod\n",
  "kind: WatchkeeperConfiguration\n",
  "- 1\n",
  "7\n",
  "",
  "# nothing\n",
  "a: 1\n---\nb: 2\n",
  "a: 1\na: 2\n",
  `${head}listeners: [{name: a, name: b}]\n? [x]\n: 1\n`,
  `${head}x: ${"[".repeat(20)}${"]".repeat(20)}\n`,
  `${head}x: !!binary AAAA\ny: "\\u202e"\nz: \t1\n`,
  "a: [1\n",
  "%YAML 3.0\n---\na: 1\n",
];

export const configSeeds: readonly string[] = [
  ...wholes.map((text) => head + text),
  ...broken.map((text) => head + text),
  ...noneOfOurs,
];
