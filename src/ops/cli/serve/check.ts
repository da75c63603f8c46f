/** `watchkeeper check --config FILE [--offline]`: reports whether the proxy could serve with this configuration. */
import { textOf } from "../../../base/address.ts";
import { timestampOf, wallClock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { limits } from "../../../base/limits.ts";
import { Journal } from "../../../events/journal.ts";
import { assertionsIn, pairFilesIn, suspicionOf } from "../../../proxy/tls/assertions.ts";
import { lastEndOf, loadCa } from "../../../proxy/tls/ca-bundle.ts";
import { ServingCertificate } from "../../../proxy/tls/certificates.ts";
import { hasAnyOf, type ServingPair, subjectsIn } from "../../../proxy/tls/serving-pair.ts";
import { askCanary } from "../../../proxy/tls/upstream-acceptance.ts";
import type { CanaryAnswer } from "../../../upstream/identity/canary.ts";
import type { BackendAddress } from "../../../upstream/net/connect.ts";
import { hasUnprotectedMetrics, unprotectedMetrics } from "../../config/admin.ts";
import type { BackendConfig, ClusterConfig, PairFiles } from "../../config/cluster.ts";
import { type Config, type ListenerConfig, parseConfig } from "../../config/config.ts";
import { isProblems, lineOf, type Problem } from "../../config/problem.ts";
import { readList } from "../../discovery/discover.ts";
import { checkFound } from "../../discovery/discovered.ts";
import { levelOf } from "../../incidents/certificate-expiry.ts";
import { docsPage } from "../../program/docs.ts";
import { readInput } from "../commands/input.ts";
import { given } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { askBackend, type BackendAnswer } from "./ask-backend.ts";

/** One result of the command. ✓: a check passed. ✗: it failed, so the exit code is 1. !: a warning. –: skipped. */
type Finding = {
  readonly mark: "✓" | "!" | "✗" | "–";
  readonly subject: string;
  readonly text: string;
  /** Address of the page that explains the problem; "": none. */
  readonly page: string;
};

function finding(mark: Finding["mark"], subject: string, text: string, page = ""): Finding {
  return { mark, subject, text, page };
}

const runbook = (alert: string): string => docsPage(`runbooks/Watchkeeper${alert}.md`);

const tlsPage = docsPage("certificates.md");
const withinMs = 3000;

/** Exit codes: 0 no failure, 1 a check failed, 2 the configuration is invalid. */
export async function check(args: string[]): Promise<number> {
  const options = given("check", args);
  if (options instanceof Failure) return failed(options);
  const named = options.text("config") ?? "";
  const file = named === "-" ? "stdin" : named;
  const config = await readConfig(named, file);
  if (isProblems(config))
    return complain(
      `${config.map((problem) => lineOf(problem)).join("\n")}\n  see ${docsPage("configuration.md")}`,
      2,
    );
  const findings = [summaryOf(config, file), ...(await findingsOf(config, options.has("offline")))];
  for (const { mark, subject, text, page } of findings) {
    const help = page === "" || mark === "✓" ? "" : `  see ${page}\n`;
    process.stdout.write(`${mark} ${subject}: ${text}\n${help}`);
  }
  return findings.some(({ mark }) => mark === "✗") ? 1 : 0;
}

async function readConfig(named: string, file: string): Promise<Config | readonly Problem[]> {
  const text = await readInput(named, limits.configBytes);
  return text instanceof Failure ? [{ at: file, field: "", message: text.message }] : parseConfig(text, file);
}

async function findingsOf(config: Config, isOffline: boolean): Promise<readonly Finding[]> {
  const clusters = clustersIn(config);
  const pairs = await Promise.all(pairsIn(config).map((named) => loaded(named)));
  const asked = clusters.map((cluster) =>
    Promise.all(backendsIn(cluster).map((backend) => backendFinding(backend, cluster, isOffline))),
  );
  const canaries = clusters.map((cluster) => identityFindings({ config, cluster, pairs, isOffline }));
  return [
    ...clusters.flatMap((cluster) => [...caFindings(cluster), ...listFindings(cluster)]),
    ...config.listeners.flatMap((listener) => plainFindings(listener)),
    ...metricsFindings(config),
    ...pairs.map((one) => pairFinding(one)),
    ...(await Promise.all([...asked, ...canaries])).flat(),
  ];
}

type Asking = {
  readonly config: Config;
  readonly cluster: Cluster;
  readonly pairs: readonly LoadedPair[];
  readonly isOffline: boolean;
};

/** Asks each backend with a canary whether it accepts the identities that the listeners assert. */
async function identityFindings({ config, cluster, pairs, isOffline }: Asking): Promise<readonly Finding[]> {
  const inCluster = { ...config, cluster: cluster.config };
  const findings = Array.from(assertionsIn(inCluster), async ([trust, assertion]) => {
    const files = pairFilesIn(inCluster, trust);
    const pair = pairs.find(({ named }) => named.files === files)?.pair;
    // Another finding reports an unusable pair.
    if (pair === undefined || pair instanceof Failure) return [];
    const what = `${cluster.prefix}${trust} identities`;
    const suspicion = suspicionOf(pair, trust, assertion) ?? "";
    if (isOffline) return suspicion === "" ? [] : [finding("✗", what, suspicion, runbook("IdentityRefused"))];
    const asked = backendsIn(cluster).map(async (backend) => {
      const subject = `${what} at backend ${cluster.prefix}${backend.name}`;
      const address = addressOf(backend, cluster);
      if (address === undefined) return finding("–", subject, noCa);
      const answer = await askCanary(pair, assertion.policy, { address, clock: wallClock });
      return identityFinding(subject, answer, { certificate: subjectsIn(pair.chain)[0] ?? "", suspicion });
    });
    return Promise.all(asked);
  });
  return (await Promise.all(findings)).flat();
}

function identityFinding(
  subject: string,
  answer: CanaryAnswer,
  { certificate, suspicion }: { readonly certificate: string; readonly suspicion: string },
): Finding {
  const page = runbook("IdentityRefused");
  if (answer.kind === "proven")
    return finding(answer.gap === "" ? "✓" : "!", subject, answer.gap || "accepted", page);
  const result = answer.kind === "none" ? "not proven" : "refused";
  const text = `${result} (${certificate}): ${[answer.problem, suspicion].filter((part) => part !== "").join("; ")}`;
  return finding(answer.kind === "none" && suspicion === "" ? "!" : "✗", subject, text, page);
}

function metricsFindings({ admin }: Config): readonly Finding[] {
  if (!hasUnprotectedMetrics(admin)) return [];
  return [finding("!", "admin.metricsAddress", unprotectedMetrics(admin), docsPage("security.md"))];
}

type Cluster = {
  readonly config: ClusterConfig;
  readonly list: readonly BackendConfig[] | Failure;
  readonly prefix: string;
  readonly ca: string | undefined | Failure;
};

function clustersIn({ clusters }: Config): readonly Cluster[] {
  return clusters.map((config) => ({
    config,
    list: listIn(config),
    prefix: prefixOf(config, clusters),
    ca: config.tls === undefined ? undefined : loadCa(config.tls.caFile),
  }));
}

function prefixOf({ name }: ClusterConfig, clusters: readonly ClusterConfig[]): string {
  return clusters.length > 1 ? `${name}/` : "";
}

/** Returns the backends in a discovery file; none for other types of discovery, which need credentials. */
function listIn({ discovery }: ClusterConfig): readonly BackendConfig[] | Failure {
  if (discovery?.type !== "File") return [];
  const read = readList(discovery.file);
  const found = read instanceof Failure ? read : checkFound(read);
  if (found instanceof Failure) return found;
  return found.map((one) => ({ ...one, url: `${one.isEncrypted ? "https" : "http"}://${textOf(one)}` }));
}

function backendsIn({ config, list }: Cluster): readonly BackendConfig[] {
  return [...config.backends, ...(list instanceof Failure ? [] : list)];
}

function listFindings({ config: { discovery }, prefix, list }: Cluster): Finding[] {
  if (discovery?.type !== "File") return [];
  const subject = `${prefix}discovery`;
  if (list instanceof Failure) return [finding("✗", subject, list.message, runbook("ConfigNotApplied"))];
  return [finding("✓", subject, `backends in ${discovery.file}: ${list.length}`)];
}

function summaryOf({ listeners, clusters }: Config, file: string): Finding {
  const backends = clusters.reduce((sum, one) => sum + one.backends.length, 0);
  const discoveries = clusters.flatMap(({ discovery }) => discovery?.type ?? []);
  const types = new Set(discoveries.filter((type) => type !== "File"));
  const more = types.size === 0 ? "" : `, and more from ${[...types].join(", ")} once it runs`;
  const several = clusters.length === 1 ? "" : `, clusters: ${clusters.length}`;
  return finding("✓", file, `valid, listeners: ${listeners.length}${several}, backends: ${backends}${more}`);
}

function caFindings({ config, prefix, ca }: Cluster): Finding[] {
  if (ca === undefined) return [];
  const subject = prefix === "" ? "backend CA" : `cluster ${config.name} backend CA`;
  // The latest expiry is reported, because a bundle may contain an old CA besides its successor.
  return [
    ca instanceof Failure
      ? finding("✗", subject, ca.message, tlsPage)
      : expiryFinding(subject, lastEndOf(ca)),
  ];
}

function plainFindings({ name, tls, mode }: ListenerConfig): Finding[] {
  const subject = `listener ${name}`;
  if (mode === "Passthrough") return [finding("✓", subject, "passes TLS through to the backends")];
  return tls === undefined ? [finding("✓", subject, "plain HTTP on loopback")] : [];
}

type LoadedPair = { readonly named: NamedPair; readonly pair: ServingPair | undefined | Failure };

/** Loads the certificate as the proxy would. This includes a TLS handshake in which the proxy connects to itself. */
async function loaded(named: NamedPair): Promise<LoadedPair> {
  const { name, files, use = "server" } = named;
  const [clock, journal] = [wallClock, new Journal(wallClock)];
  const certificate = await ServingCertificate.load({ name, clock, journal, use, ...files });
  if (certificate instanceof Failure) return { named, pair: certificate };
  certificate.stop();
  return { named, pair: certificate.current?.pair };
}

function pairFinding({ named: { what, name, names = [] }, pair }: LoadedPair): Finding {
  const subject = `${what} ${name}`.trimStart();
  if (pair instanceof Failure) return finding("✗", subject, pair.message, runbook("CertificateRefused"));
  if (names.length > 0 && pair !== undefined && !hasAnyOf(names, pair))
    return finding("!", subject, `its certificate has none of the names ${names.join(", ")}`, tlsPage);
  return expiryFinding(subject, pair?.notAfter ?? 0);
}

const noCa = "not asked (no CA)";

/**
 * Returns the address for which a socket is opened with the same settings as an upstream connection. Undefined: without
 * its CA bundle, the backend cannot be verified. Another finding reports the missing bundle.
 */
function addressOf(backend: BackendConfig, { config, ca }: Cluster): BackendAddress | undefined {
  const { tls, proxyProtocol } = config;
  if (!backend.isEncrypted) return { ...backend, tls: undefined, proxyProtocol };
  if (ca instanceof Failure) return undefined;
  const source = tls && { caFile: tls.caFile, isNamed: tls.serverName !== undefined };
  return { ...backend, tls: { ca, serverName: tls?.serverName ?? backend.host, source }, proxyProtocol };
}

async function backendFinding(
  backend: BackendConfig,
  cluster: Cluster,
  isOffline: boolean,
): Promise<Finding> {
  const subject = `backend ${cluster.prefix}${backend.name}`;
  if (isOffline) return finding("–", subject, `${backend.url} not asked (--offline)`);
  const address = addressOf(backend, cluster);
  if (address === undefined) return finding("–", subject, noCa);
  const answer = await askBackend(address, wallClock, withinMs);
  if (answer instanceof Failure)
    return finding("✗", subject, `${backend.url}: ${answer.message}`, pageOf(answer));
  return answerFinding(subject, backend, answer);
}

function pageOf({ code, message }: Failure): string {
  const isDown = message.startsWith("No answer") || /TLS|certificate|authority/i.test(message);
  return isDown || code === "backend-refused" ? runbook("BackendDown") : docsPage("faq.md");
}

function answerFinding(subject: string, { url }: BackendConfig, answer: BackendAnswer): Finding {
  const { status, tookMs, notAfter, version } = answer;
  const expiry = notAfter === undefined ? undefined : expiryFinding(subject, notAfter);
  const answered = `${url} answered /readyz with ${status} in ${Math.round(tookMs)} ms`;
  const text = expiry === undefined ? answered : `${answered}, ${expiry.text}`;
  if (!isAlive(answer)) return finding("✗", subject, text, runbook("BackendDown"));
  const { mark, page } = expiry ?? finding("✓", subject, text);
  if (mark !== "✓" || asksForProgress(answer)) return finding(mark, subject, text, page);
  const progress = `${version} does not ask etcd for progress: etcd needs --watch-progress-notify-interval=5s, or quiet watches cannot follow two restarts within 10 min`;
  return finding("!", subject, `${text}, ${progress}`, runbook("BackendStale"));
}

/** True if this status shows a live apiserver. An apiserver sends 401 if anonymous requests are disabled. */
function isAlive({ status }: BackendAnswer): boolean {
  return [200, 401, 403].includes(status);
}

/**
 * True if the apiserver asks etcd for progress notifications, the default since 1.31 (watch.md §6.6), or if its version
 * is unknown.
 */
function asksForProgress({ version }: BackendAnswer): boolean {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  return major === undefined || Number(major) > 1 || Number(minor) >= 31;
}

function expiryFinding(subject: string, notAfter: number): Finding {
  const page = runbook("CertificateExpiring");
  const leftMs = notAfter - wallClock.wall();
  const at = timestampOf(notAfter);
  if (leftMs <= 0) return finding("✗", subject, `certificate expired at ${at}`, page);
  // The warning appears as early as the alert CertificateExpiring does. `page` is the runbook of this alert.
  const mark = levelOf(leftMs, "serving") === "ok" ? "✓" : "!";
  return finding(mark, subject, `certificate good until ${at}`, page);
}

type NamedPair = {
  /** What the certificate belongs to; "" if `name` already says it. */
  readonly what: "listener" | "host" | "";
  readonly name: string;
  /** Server names (SNI) of which the certificate must contain at least one; default: not checked. */
  readonly names?: readonly string[];
  /** "client" for a certificate with which the proxy is a client of backends; default: "server". */
  readonly use?: "client" | "server";
  /** Files of the certificate and its key, and of the CA bundle that verifies clients (undefined: none). */
  readonly files: PairFiles & { readonly clientCaFile?: string | undefined };
};

/** Returns every certificate in a configuration, with the name that it has in the log and the metrics. */
export function pairsIn({ listeners, clusters, admin }: Config): readonly NamedPair[] {
  const ports = [
    ["admin", admin.tls],
    ["metrics", admin.metrics.tls],
  ] as const;
  return [
    ...listeners.flatMap((listener) => servingPairs(listener)),
    ...clusters.flatMap((cluster) => clientPairs(cluster, prefixOf(cluster, clusters))),
    ...ports.flatMap(([name, files]) => (files === undefined ? [] : [{ what: "" as const, name, files }])),
  ];
}

function servingPairs({ name, tls, hosts }: ListenerConfig): readonly NamedPair[] {
  if (tls === undefined) return [];
  const ofHosts = hosts.map(({ serverNames: names, tls: files }) => ({
    what: "host" as const,
    name: `${name}/${names[0] ?? ""}`,
    names,
    files,
  }));
  return [{ what: "listener", name, files: tls }, ...ofHosts];
}

/** Certificates that the proxy presents to backends on behalf of clients. */
function clientPairs({ tls }: ClusterConfig, prefix: string): readonly NamedPair[] {
  const { frontProxy, impersonator } = tls ?? {};
  const named = [
    { name: `${prefix}front-proxy`, files: frontProxy },
    { name: `${prefix}impersonator`, files: impersonator },
  ];
  return named.flatMap(({ name, files }) =>
    files === undefined ? [] : [{ what: "", name, files, use: "client" }],
  );
}
