/** Generates configuration files for each way to deploy watchkeeper, as text with comments for the operator. */
import { docsPage } from "../../program/docs.ts";

export type NamedBackend = {
  readonly name: string;
  readonly url: string;
  /** The backend's share of the load, relative to the weights of the other backends; default: 1. */
  readonly weight?: number;
};

export type ConfigWishes = {
  /** Comment lines for the top of the file. */
  readonly about: readonly string[];
  readonly name: string;
  readonly address: string;
  /** True if two pods on the same node listen on the same port (SO_REUSEPORT); default: false. */
  readonly reusesPort?: boolean;
  /** Certificate and key of the proxy; default: none, so that the proxy passes TLS through to the apiservers. */
  readonly serving?: ServingFiles;
  readonly backends: readonly NamedBackend[];
  readonly caFile: string;
  readonly frontProxy?: { readonly certFile: string; readonly keyFile: string };
  readonly metricsAddress: string;
  /** The metrics' own certificate, and the kubeconfig for TokenReviews; default: plain HTTP without authorization. */
  readonly secureMetrics?: SecureMetrics;
};

export type SecureMetrics = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly kubeconfigFile: string;
};

type ServingFiles = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCAFile?: string;
};

export function shapeConfig(wishes: ConfigWishes): string {
  const { about, name, address, backends, caFile, frontProxy, metricsAddress } = wishes;
  return `${about.map((line) => `# ${line}\n`).join("")}apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata:
  name: ${name}

listeners:
  - name: kube
    address: ${JSON.stringify(address)}
${wishes.reusesPort === true ? `    reusePort: true # a second pod can listen while this one is replaced: ${docsPage("restart.md")}\n` : ""}${servingLines(wishes.serving)}
clusters:
  - name: ${name}
    backends:
${backends.map(backendLine).join("")}    tls:
      caFile: ${caFile}
      serverName: kubernetes.default.svc # every kube-apiserver's certificate contains it
${frontProxyLines(frontProxy)}
${wishes.reusesPort === true ? drainLines : ""}admin:
  metricsAddress: ${JSON.stringify(metricsAddress)} # /metrics, /livez, /readyz
${metricsLines(wishes.secureMetrics)}`;
}

/** Directory of the Unix socket through which one pod passes its listening sockets to the other pod of the node. */
export const handoverDirectory = "/var/lib/watchkeeper";

const drainLines = `drain:
  handoverDirectory: ${handoverDirectory} # a pod that stops passes its sockets on to the other pod of the node here

`;

function backendLine({ name, url, weight = 1 }: NamedBackend): string {
  const share = weight === 1 ? "" : `, weight: ${weight}`;
  return `      - {name: ${name}, url: ${JSON.stringify(url)}${share}}\n`;
}

function servingLines(serving: ServingFiles | undefined): string {
  if (serving === undefined)
    return "    mode: Passthrough # TLS passes through unchanged: no key is needed\n";
  const { certFile, keyFile, clientCAFile } = serving;
  const clients =
    clientCAFile === undefined
      ? ""
      : `      clientCAFile: ${clientCAFile}\n    identity: {clientCerts: FrontProxy} # kubelets and controllers authenticate with certificates\n`;
  return `    tls:\n      certFile: ${certFile}\n      keyFile: ${keyFile}\n${clients}`;
}

function metricsLines(secure: SecureMetrics | undefined): string {
  if (secure === undefined) return "";
  return `  metrics: # TLS, and a token that the cluster authorizes; probes need no token
    tls:
      certFile: ${secure.certFile}
      keyFile: ${secure.keyFile}
    authorization:
      mode: Webhook
      kubeconfigFile: ${secure.kubeconfigFile}
`;
}

function frontProxyLines(pair: ConfigWishes["frontProxy"]): string {
  if (pair === undefined) return "";
  return `      frontProxy: # the key grants as much as cluster-admin: control-plane nodes only
        certFile: ${pair.certFile}
        keyFile: ${pair.keyFile}
`;
}
