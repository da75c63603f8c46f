/**
 * Writes the sidecar's files into its pod: its serving certificate, and the directory in which in-cluster clients look
 * for token, CA and namespace.
 */
import { readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../base/clock.ts";
import { Failure, failureFrom } from "../../../base/failure.ts";
import { watchFiles } from "../../../base/file-watcher.ts";
import { limits } from "../../../base/limits.ts";
import { readText } from "../../../base/read-text.ts";
import { loadCa } from "../../../proxy/tls/ca-bundle.ts";
import { certificatesIn, checkPair } from "../../../proxy/tls/serving-pair.ts";
import { quote } from "../../config/problem.ts";
import { createAuthority } from "../../pki/pki.ts";
import { makeDirectory } from "./new-files.ts";
import { sidecarHosts, stateFiles } from "./sidecar-shape.ts";

export type PodDirectories = {
  /** Directory into which the kubelet writes the service account's files. */
  readonly direct: string;
  /** Directory in which clients look for the service account's files. */
  readonly shared: string;
  /** Directory that only the sidecar reads. It lives as long as the pod. */
  readonly state: string;
};

/**
 * Validity of the certificate in milliseconds. The certificate cannot be renewed without the CA's key, so it is valid
 * for longer than any pod lives.
 */
const certificateMs = 10 * 365 * 86_400_000;
/** The certificate is replaced if its remaining validity is shorter than this many milliseconds. */
const leastLeftMs = 30 * 86_400_000;

/** Writes all files that the pod needs. Resolves with undefined when they are complete, or with a Failure. */
export async function preparePod(directories: PodDirectories, clock: Clock): Promise<Failure | undefined> {
  const { direct, shared, state } = directories;
  const missing = ["token", "namespace"].find(
    (name) => readText(join(direct, name), limits.tokenBytes) instanceof Failure,
  );
  if (missing !== undefined)
    return refuse(
      `${quote(join(direct, missing))} cannot be read: mount the projected service account there`,
    );
  try {
    await ensureCertificate(state, clock);
    linkTo(direct, shared);
    return writeCa(directories);
  } catch (reason) {
    return refuse(
      `${failureFrom(reason, "proxy").message}: mount an emptyDir on ${quote(shared)} and one on ${quote(state)}`,
    );
  }
}

function refuse(message: string): Failure {
  return new Failure("bad-file", "proxy", `Cannot prepare the pod: ${message}`);
}

/**
 * Makes a CA and one certificate. Discards the CA's key, because the application trusts every certificate that is
 * signed with this key. CA and certificate survive a restart of the sidecar, because clients read ca.crt only once.
 */
async function ensureCertificate(state: string, clock: Clock): Promise<void> {
  const files = stateFiles(state);
  if (isKept(files, clock)) return;
  makeDirectory(state);
  const notAfter = clock.wall() + certificateMs;
  const authority = await createAuthority({ name: "watchkeeper sidecar", notAfter, clock });
  const { certificate, key } = authority.issue({ name: "watchkeeper", hosts: sidecarHosts, notAfter });
  replace(files.key, key, 0o600);
  replace(files.cert, certificate, 0o600);
  // The CA file is written last, so that its presence proves that the other files are complete. If it is missing at the
  // next start, all files are written again.
  replace(files.ca, authority.certificate, 0o644);
}

function isKept(files: ReturnType<typeof stateFiles>, clock: Clock): boolean {
  const [ca, cert, key] = [files.ca, files.cert, files.key].map((file) =>
    readText(file, limits.certificateBytes),
  );
  if (typeof ca !== "string" || typeof cert !== "string" || typeof key !== "string") return false;
  const pair = checkPair(cert, key, clock.wall());
  const [authority] = asList(certificatesIn(ca));
  const [leaf] = asList(certificatesIn(cert));
  if (pair instanceof Failure || authority === undefined || leaf === undefined) return false;
  return leaf.verify(authority.publicKey) && pair.notAfter - clock.wall() > leastLeftMs;
}

function asList<T>(outcome: readonly T[] | Failure): readonly T[] {
  return outcome instanceof Failure ? [] : outcome;
}

/** Creates links to the kubelet's files, so that clients get renewed tokens even while the sidecar does not run. */
function linkTo(direct: string, shared: string): void {
  for (const name of ["token", "namespace"]) {
    const target = join(direct, name);
    const link = join(shared, name);
    if (linkedTo(link) === target) continue;
    const fresh = `${link}.new`;
    rmSync(fresh, { force: true });
    symlinkSync(target, fresh);
    renameSync(fresh, link);
  }
}

function linkedTo(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined; // The path is missing or is no link, so it is replaced.
  }
}

/**
 * Writes ca.crt for clients, with the sidecar's CA and the cluster's CAs. Clients also need the cluster's CAs, because
 * a client that connects to the service's name bypasses the sidecar.
 */
function writeCa({ direct, shared, state }: PodDirectories): Failure | undefined {
  const cluster = loadCa(join(direct, "ca.crt"));
  if (cluster instanceof Failure) return cluster;
  const own = loadCa(stateFiles(state).ca);
  if (own instanceof Failure) return own;
  const text = own + cluster;
  const path = join(shared, "ca.crt");
  if (readText(path, limits.certificateBytes * 2) !== text) replace(path, text, 0o644);
  return undefined;
}

/** Replaces the file atomically, because a client may read it at any time. */
function replace(path: string, text: string, mode: number): void {
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
}

/**
 * Writes ca.crt again whenever the cluster's CA changes, and then calls `onChange` with the outcome. Returns a function
 * that stops this.
 */
export function followCa(
  directories: PodDirectories,
  parts: { readonly clock: Clock; readonly onChange: (failure: Failure | undefined) => void },
): () => void {
  const { clock, onChange } = parts;
  return watchFiles([join(directories.direct, "ca.crt")], {
    clock,
    intervalMs: 1000,
    onChange: () => {
      try {
        onChange(writeCa(directories));
      } catch (reason) {
        onChange(refuse(failureFrom(reason, "proxy").message));
      }
    },
  });
}
