/** `watchkeeper check --config FILE [--offline]`: reports whether the proxy could serve with this configuration. */
import { textOf } from "../../base/address.ts";
import { timestampOf, wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { hasUnprotectedMetrics, unprotectedMetrics } from "../../config/admin.ts";
import type { BackendConfig, ClusterConfig, PairFiles } from "../../config/cluster.ts";
import { type Config, type ListenerConfig, parseConfig } from "../../config/config.ts";
import { isProblems, lineOf, type Problem } from "../../config/problem.ts";
import { readList } from "../../discovery/discover.ts";
import { checkFound } from "../../discovery/discovered.ts";
import { Journal } from "../../events/journal.ts";
import { levelOf } from "../../incidents/certificate-expiry.ts";
import { docsPage } from "../../program/docs.ts";
import type { CanaryAnswer } from "../../proxy/identity/canary.ts";
import { type Assertion, assertionsIn, pairFilesIn, suspicionOf } from "../../proxy/tls/assertions.ts";
import { loadCa } from "../../proxy/tls/ca-bundle.ts";
import { ServingCertificate } from "../../proxy/tls/certificates.ts";
import { certificatesIn, hasAnyOf, type ServingPair, subjectsIn } from "../../proxy/tls/serving-pair.ts";
import { askCanary } from "../../proxy/tls/upstream-acceptance.ts";
import { readInput } from "../commands/input.ts";
import { given } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { askBackend, type BackendAnswer } from "./ask-backend.ts";

/** One result of the command. ✓: a check passed. ✗: it failed, so the exit code is 1. !: a warning. –: skipped. */
type Finding = {
  readonly mark: "✓" | "!" | "✗" | "–";
  readonly subject: string;
  readonly text: string;
  /** Address of the page that explains the problem; default: none. */
  readonly page?: string;
};

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
    const help = page === undefined || mark === "✓" ? "" : `  see ${page}\n`;
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
  const ask = isOffline ? notAsked : backendFinding;
  const backends = clusters.flatMap((cluster) => backendsIn(cluster).map((one) => ask(one, cluster)));
  return [
    ...clusters.flatMap((cluster) => [...caFindings(cluster), ...listFindings(cluster)]),
    ...config.listeners.flatMap((listener) => plainFindings(listener)),
    ...metricsFindings(config),
    ...(await Promise.all(pairsIn(config).map((pair) => pairFinding(pair)))),
    ...(await Promise.all(backends)),
    ...(await Promise.all(clusters.map((cluster) => identityFindings(config, cluster, isOffline)))).flat(),
  ];
}

/** Asks each backend with a canary whether it accepts the identities that the listeners assert. */
async function identityFindings(
  config: Config,
  cluster: Cluster,
  isOffline: boolean,
): Promise<readonly Finding[]> {
  const inCluster = { ...config, cluster: cluster.config };
  const findings = Array.from(assertionsIn(inCluster), async ([trust, assertion]) => {
    const files = pairFilesIn(inCluster, trust);
    const pair = files && (await pairIn(files));
    if (pair === undefined) return [];
    const suspicion = suspicionOf(pair, trust, assertion);
    const of = { what: `${cluster.prefix}${trust} identities`, cluster, suspicion };
    const page = runbook("IdentityRefused");
    if (isOffline)
      return suspicion === undefined ? [] : [{ mark: "✗" as const, subject: of.what, text: suspicion, page }];
    const asked = backendsIn(cluster).map((backend) => identityFinding(backend, { ...of, pair, assertion }));
    return Promise.all(asked);
  });
  return (await Promise.all(findings)).flat();
}

/** Returns the pair in these files; undefined if it is unusable, which another finding reports. */
async function pairIn(files: PairFiles): Promise<ServingPair | undefined> {
  const [clock, journal] = [wallClock, new Journal(wallClock)];
  const certificate = await ServingCertificate.load({ name: "", clock, journal, use: "client", ...files });
  if (certificate instanceof Failure) return undefined;
  certificate.stop();
  return certificate.current?.pair;
}

type IdentityQuestion = {
  readonly what: string;
  readonly cluster: Cluster;
  readonly suspicion: string | undefined;
  readonly pair: ServingPair;
  readonly assertion: Assertion;
};

async function identityFinding(
  backend: BackendConfig,
  { what, cluster, suspicion, pair, assertion }: IdentityQuestion,
): Promise<Finding> {
  const subject = `${what} at backend ${cluster.prefix}${backend.name}`;
  const ca = cluster.ca instanceof Failure ? undefined : cluster.ca;
  if (ca === undefined && backend.isEncrypted) return { mark: "–", subject, text: "not asked (no CA)" };
  const { proxyProtocol, tls } = cluster.config;
  const verified = { ca, serverName: tls?.serverName ?? backend.host };
  const address = { ...backend, tls: backend.isEncrypted ? verified : undefined, proxyProtocol };
  const answer = await askCanary(pair, assertion.policy, { address, clock: wallClock });
  const [certificate = ""] = subjectsIn(pair.chain);
  const page = runbook("IdentityRefused");
  return { subject, page, ...identitySaid(answer, certificate, suspicion) };
}

function identitySaid(
  answer: CanaryAnswer,
  certificate: string,
  suspicion: string | undefined,
): Pick<Finding, "mark" | "text"> {
  if (answer.kind === "proven")
    return { mark: answer.gap === "" ? "✓" : "!", text: answer.gap || "accepted" };
  const text = `${answer.kind === "none" ? "not proven" : "refused"} (${certificate}): ${answer.problem}`;
  if (answer.kind === "none" && suspicion === undefined) return { mark: "!", text };
  return { mark: "✗", text: suspicion === undefined ? text : `${text}; ${suspicion}` };
}

function metricsFindings({ admin }: Config): readonly Finding[] {
  if (!hasUnprotectedMetrics(admin)) return [];
  return [
    {
      mark: "!",
      subject: "admin.metricsAddress",
      text: unprotectedMetrics(admin),
      page: docsPage("security.md"),
    },
  ];
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
    prefix: clusters.length > 1 ? `${config.name}/` : "",
    ca: config.tls === undefined ? undefined : loadCa(config.tls.caFile),
  }));
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
  if (list instanceof Failure)
    return [{ mark: "✗", subject, text: list.message, page: runbook("ConfigNotApplied") }];
  return [{ mark: "✓", subject, text: `backends in ${discovery.file}: ${list.length}` }];
}

function summaryOf({ listeners, clusters }: Config, file: string): Finding {
  const backends = clusters.reduce((sum, one) => sum + one.backends.length, 0);
  const types = new Set(
    clusters.flatMap(({ discovery }) =>
      discovery === undefined || discovery.type === "File" ? [] : [discovery.type],
    ),
  );
  const more = types.size === 0 ? "" : `, and more from ${[...types].join(", ")} once it runs`;
  const several = clusters.length === 1 ? "" : `, clusters: ${clusters.length}`;
  const text = `valid, listeners: ${listeners.length}${several}, backends: ${backends}${more}`;
  return { mark: "✓", subject: file, text };
}

function caFindings({ config, prefix, ca }: Cluster): Finding[] {
  if (ca === undefined) return [];
  const subject = prefix === "" ? "backend CA" : `cluster ${config.name} backend CA`;
  const certificates = ca instanceof Failure ? ca : certificatesIn(ca);
  if (certificates instanceof Failure)
    return [{ mark: "✗", subject, text: certificates.message, page: tlsPage }];
  // The latest expiry is reported, because a bundle may contain an old CA besides its successor.
  return [{ ...expiryOf(Math.max(...certificates.map((one) => one.validToDate.getTime()))), subject }];
}

function plainFindings({ name, tls, mode }: ListenerConfig): Finding[] {
  const subject = `listener ${name}`;
  if (mode === "Passthrough") return [{ mark: "✓", subject, text: "passes TLS through to the backends" }];
  return tls === undefined ? [{ mark: "✓", subject, text: "plain HTTP on loopback" }] : [];
}

/** Loads the certificate as the proxy would. This includes a TLS handshake in which the proxy connects to itself. */
async function pairFinding({ what, name, names = [], files, use = "server" }: NamedPair): Promise<Finding> {
  const subject = `${what} ${name}`.trimStart();
  const clock = wallClock;
  const certificate = await ServingCertificate.load({
    name,
    clock,
    journal: new Journal(clock),
    use,
    ...files,
  });
  if (certificate instanceof Failure)
    return { mark: "✗", subject, text: certificate.message, page: runbook("CertificateRefused") };
  certificate.stop();
  const pair = certificate.current?.pair;
  if (names.length > 0 && pair !== undefined && !hasAnyOf(names, pair))
    return {
      mark: "!",
      subject,
      text: `its certificate has none of the names ${names.join(", ")}`,
      page: tlsPage,
    };
  return { ...expiryOf(pair?.notAfter ?? 0), subject };
}

function notAsked({ name, url }: BackendConfig, { prefix }: Cluster): Promise<Finding> {
  return Promise.resolve({
    mark: "–",
    subject: `backend ${prefix}${name}`,
    text: `${url} not asked (--offline)`,
  });
}

async function backendFinding(
  backend: BackendConfig,
  { config, prefix, ca: loaded }: Cluster,
): Promise<Finding> {
  const subject = `backend ${prefix}${backend.name}`;
  const ca = loaded instanceof Failure ? undefined : loaded;
  // The backend cannot be verified without its CA bundle, so it is skipped. Another finding reports the missing bundle.
  if (loaded instanceof Failure && backend.isEncrypted)
    return { mark: "–", subject, text: "not asked (no CA)" };
  const { tls, proxyProtocol } = config;
  const { serverName, caFile } = tls ?? {};
  const clock = wallClock;
  const answer = await askBackend({ backend, ca, caFile, serverName, proxyProtocol, clock, withinMs });
  if (answer instanceof Failure)
    return { mark: "✗", subject, text: `${backend.url}: ${answer.message}`, page: pageOf(answer) };
  return { subject, ...said(backend, answer) };
}

function pageOf({ code, message }: Failure): string {
  const isDown = message.startsWith("No answer") || /TLS|certificate|authority/i.test(message);
  return isDown || code === "backend-refused" ? runbook("BackendDown") : docsPage("faq.md");
}

function said(backend: BackendConfig, answer: BackendAnswer): Omit<Finding, "subject"> {
  const expiry = answer.notAfter === undefined ? undefined : expiryOf(answer.notAfter);
  const text = [`${backend.url} ${saidBy(answer)}`, expiry?.text]
    .filter((part) => part !== undefined)
    .join(", ");
  if (!isAlive(answer)) return { mark: "✗", text, page: runbook("BackendDown") };
  if (!asksForProgress(answer) && (expiry?.mark ?? "✓") === "✓") {
    const progress = `${answer.version} does not ask etcd for progress: etcd needs --watch-progress-notify-interval=5s, or quiet watches cannot follow two restarts within 10 min`;
    return { mark: "!", text: `${text}, ${progress}`, page: runbook("BackendStale") };
  }
  return { mark: expiry?.mark ?? "✓", text, page: runbook("CertificateExpiring") };
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

function saidBy({ status, tookMs }: BackendAnswer): string {
  return `answered /readyz with ${status} in ${Math.round(tookMs)} ms`;
}

function expiryOf(notAfter: number): Omit<Finding, "subject"> {
  const page = runbook("CertificateExpiring");
  const leftMs = notAfter - wallClock.wall();
  if (leftMs <= 0) return { mark: "✗", text: `certificate expired at ${timestampOf(notAfter)}`, page };
  // The warning appears as early as the alert CertificateExpiring does. `page` is the runbook of this alert.
  return {
    mark: levelOf(leftMs, "serving") === "ok" ? "✓" : "!",
    text: `certificate good until ${timestampOf(notAfter)}`,
    page,
  };
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
  const own = ports.flatMap(([name, files]) =>
    files === undefined ? [] : [{ what: "" as const, name, files }],
  );
  return [
    ...listeners.flatMap((listener) => servingPairs(listener)),
    ...clusters.flatMap((cluster) => clientPairs(cluster, clusters.length > 1 ? `${cluster.name}/` : "")),
    ...own,
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
