/** Configurations that are right, and those that each break one rule: to begin with, for whoever changes them at random. */
const head = "apiVersion: watchkeeper.dev/v1alpha1\nkind: WatchkeeperConfiguration\n";
const serving = "certFile: c, keyFile: k";
const plain = 'listeners: [{name: a, address: "127.0.0.1:1"}]\n';
const one = 'upstream: {backends: [{name: b, url: "https://h:1"}], tls: {caFile: c}}\n';

/** A listener with TLS, and more of it. */
const secure = (more: string, tls = ""): string =>
  `listeners: [{name: a, address: "0.0.0.0:1", tls: {${serving}${tls}}${more}}]\n`;
/** The only cluster, and more of it and of its tls. */
const upstream = (more: string, tls = ""): string =>
  `upstream: {backends: [{name: b, url: "https://h:1"}], tls: {caFile: c${tls}}${more}}\n`;
const through = (more: string): string =>
  `listeners: [{name: a, address: "0.0.0.0:1", mode: passthrough${more}}]\n`;
const found = (more: string): string => `upstream: {discovery: {${more}}, tls: {caFile: c}}\n`;
const several = (first: string, second: string): string =>
  `upstreams: [{${first}backends: [{name: b, url: "https://h:1"}], tls: {caFile: c}}, {${second}backends: [{name: b, url: "https://i:1"}], tls: {caFile: c}}]\n`;

const wholes: readonly string[] = [
  secure(", identity: {clientCerts: front-proxy}", ", clientCAFile: a") +
    upstream("", ", frontProxy: {certFile: f, keyFile: g, usernameHeaders: [X-U], groupHeaders: [X-G]}"),
  secure(", identity: {clientCerts: impersonate}", ", clientCAFile: a") +
    upstream(", sharing: none", ", serverName: s, impersonator: {certFile: f, keyFile: g}"),
  secure(", identity: {clientCerts: lend}", ", clientCAFile: a") +
    upstream("", ", impersonator: {certFile: f, keyFile: g}"),
  secure(`, hosts: [{names: [X.example, "*.y"], tls: {${serving}}}]`) + one,
  secure(', trustedForwarders: [10.0.0.0/8, "fd00::/8"], connectionsPerSource: 3') + one,
  secure(", proxyProtocol: {mode: require, trusted: [10.0.0.0/8]}") + upstream(", proxyProtocol: v2"),
  secure(", upstream: x") + several("name: x, ", "name: y, "),
  through(", routes: [{serverNames: [s], upstream: x, backends: [b]}, {upstream: y}]") +
    several("name: x, ", "name: y, "),
  through("") + one,
  plain + found("from: dns, name: h, port: 1, interval: 5s"),
  plain + found('from: file, file: f, fallback: {name: z, url: "https://z:1"}'),
  plain + found("from: endpointslice, kubeconfigFile: f"),
  plain + found("from: leases"),
  'listeners: [{name: a, address: "[::1]:1"}]\nupstream: {backends: [{name: b, url: "http://[::1]:2/"}], lanes: {streams: 10, warm: 2}}\n',
  `${plain}${one}metadata: {name: n}\nwatches: {bookmarks: always, timeTravelGuard: enforce}\nhealth: {ping: {interval: 1s, suspectAfter: 2s, deadAfter: 1m30s}, probe: {path: /x, interval: 1s, timeout: 1s}, keepalive: {idle: 15s, interval: 5s, count: 3}}\ndrain: {readyDelay: 10ms, timeout: 1h}\nadmin: {address: "localhost:3", metricsAddress: "[::]:4", operations: off}\nlogging: {format: json, accessLog: all}\n`,
];

const broken: readonly string[] = [
  'listeners: [{name: a, address: "127.0.0.1:1"}, {name: a, address: "[::]:1"}]\n' + one,
  'listeners: [{name: a, address: "0.0.0.0:1"}, {name: b, address: "localhost:1"}]\n' + one,
  'listeners: [{name: a, address: "10.0.0.1:1"}]\nupstream: {backends: [{name: b, url: "https://10.0.0.1:1"}], tls: {caFile: c}}\n',
  `${plain}upstream: {backends: [{name: b, url: "http://h:1"}, {name: b, url: "https://127.0.0.1:1"}]}\n`,
  `${plain}upstream: {backends: [{name: b, url: "https://h:1"}, {name: c, url: "https://h:1"}]}\n`,
  `${plain}upstream: {backends: []}\n`,
  `${plain}upstream: {}\n`,
  plain,
  plain + one + several("", ""),
  plain + several("name: x, ", "name: x, "),
  `${secure(", upstream: y")}${several("name: x, ", "name: xx, ")}`,
  secure(", upstream: y") + one,
  secure(`, hosts: [{names: [x], tls: {${serving}}}, {names: [X], upstream: q, tls: {${serving}}}]`) + one,
  `listeners: [{name: a, address: "127.0.0.1:1", hosts: [{names: [x], tls: {${serving}}}]}]\n${one}`,
  secure("", ", clientCAFile: a") + one,
  secure(", identity: {clientCerts: front-proxy}") + one,
  secure(", identity: {clientCerts: impersonate}", ", clientCAFile: a") + one,
  secure(", proxyProtocol: {mode: accept}") + one,
  secure(", proxyProtocol: {trusted: [10.0.0.0/8]}") + one,
  secure(", routes: [{}]") + one,
  through(`, tls: {${serving}}, trustedForwarders: [10.0.0.0/8]`) + upstream(", lanes: {warm: 0}"),
  `${through("")}upstream: {backends: [{name: b, url: "http://127.0.0.1:2"}]}\n`,
  through(", upstream: x, routes: [{}, {}, {serverNames: [s, s], backends: [nobody]}]") + one,
  plain + found("from: dns, file: f"),
  plain + found("from: leases, name: n"),
  `${plain}upstream: {backends: [{name: b, url: "https://h:1"}], discovery: {from: file, file: f, fallback: {name: b, url: "http://z:1"}}}\n`,
  `${plain}upstream: {discovery: {from: leases}, proxyProtocol: v1, tls: {caFile: c}}\n`,
  `${plain}${one}health: {ping: {interval: 2s, suspectAfter: 1s, deadAfter: 1s}}\n`,
  `${plain}${one}health: {ping: {interval: 1000h}, probe: {path: x}, keepalive: {count: 0}}\n`,
  `${plain}${one}health: {keepalive: {count: 999999}}\nlogging: {accessLog: evrything, format: 3}\ndrain: soon\nadmin: {operations: true}\n`,
  `${plain}${one}metadata: {name: ""}\nlistners: []\nwatches: null\n`,
  `${plain}${one}metadata: {name: ${"n".repeat(300)}}\n`,
  `listeners: [${Array.from({ length: 70 }, (_, at) => `{name: a${at}, address: "127.0.0.1:${at}"}`).join(", ")}]\n${one}`,
  `listeners: []\n${one}`,
  `listeners: {name: a}\nupstream: [1]\n`,
  'listeners: [{address: nowhere}]\nupstream: {backends: [{name: B_, url: "ftp://u:p@h"}]}\n',
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
