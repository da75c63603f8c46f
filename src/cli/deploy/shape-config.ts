/**
 * The configurations of the shapes that watchkeeper is deployed in: what `manifest` and `import` print and deploy/ has.
 * Text, since comments are the half of it that people read. Pure.
 */

export type NamedBackend = { readonly name: string; readonly url: string };

export type ConfigWishes = {
  /** What is said first, a line each. */
  readonly about: readonly string[];
  readonly name: string;
  readonly address: string;
  /** Left out: TLS is left to the apiservers (passthrough). */
  readonly serving?: Serving;
  readonly backends: readonly NamedBackend[];
  /** More lines of the cluster. */
  readonly cluster?: readonly string[];
  readonly caFile: string;
  readonly frontProxy?: { readonly certFile: string; readonly keyFile: string };
  readonly metricsAddress: string;
};

type Serving = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCAFile?: string;
};

/** A whole file. */
export function shapeConfig(wishes: ConfigWishes): string {
  const { about, name, address, backends, cluster = [], caFile, frontProxy, metricsAddress } = wishes;
  return `${about.map((line) => `# ${line}\n`).join("")}apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata:
  name: ${name}

listeners:
  - name: kube
    address: ${JSON.stringify(address)}
${servingLines(wishes.serving)}
clusters:
  - name: ${name}
${backends.length === 0 ? "" : `    backends:\n${backends.map(backendLine).join("")}`}${cluster.map((line) => `    ${line}\n`).join("")}    tls:
      caFile: ${caFile}
      serverName: kubernetes.default.svc # every kube-apiserver's certificate has it
${frontProxyLines(frontProxy)}
admin:
  metricsAddress: ${JSON.stringify(metricsAddress)} # /metrics, /livez, /readyz
`;
}

function backendLine({ name, url }: NamedBackend): string {
  return `      - {name: ${name}, url: ${JSON.stringify(url)}}\n`;
}

function servingLines(serving: Serving | undefined): string {
  if (serving === undefined) return "    mode: Passthrough # TLS goes through untouched: no key is needed\n";
  const { certFile, keyFile, clientCAFile } = serving;
  const clients =
    clientCAFile === undefined
      ? ""
      : `      clientCAFile: ${clientCAFile}\n    identity: {clientCerts: FrontProxy} # kubelets and controllers come with certificates\n`;
  return `    tls:\n      certFile: ${certFile}\n      keyFile: ${keyFile}\n${clients}`;
}

function frontProxyLines(pair: ConfigWishes["frontProxy"]): string {
  if (pair === undefined) return "";
  return `      frontProxy: # the key is worth as much as cluster-admin: control-plane nodes only
        certFile: ${pair.certFile}
        keyFile: ${pair.keyFile}
`;
}
