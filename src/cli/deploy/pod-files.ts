/**
 * What a sidecar writes into its pod: a certificate of its own, and a directory in which every in-cluster client finds
 * token, CA and namespace where it always does.
 */
import { readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { watchFiles } from "../../base/file-watcher.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { quote } from "../../config/problem.ts";
import { createAuthority } from "../../pki/pki.ts";
import { loadCa } from "../../proxy/tls/ca-bundle.ts";
import { certificatesIn, checkPair } from "../../proxy/tls/serving-pair.ts";
import { makeDirectory } from "./new-files.ts";
import { sidecarHosts, stateFiles } from "./sidecar-shape.ts";

export type PodDirectories = {
  /** What the kubelet projects. */
  readonly direct: string;
  /** Where clients look. */
  readonly shared: string;
  /** The sidecar's alone; it lives as long as the pod. */
  readonly state: string;
};

/** How long its certificate is good: longer than any pod lives, since nothing is left that could sign another. */
const certificateMs = 10 * 365 * 86_400_000;
/** A kept certificate with less than this left is made anew. */
const leastLeftMs = 30 * 86_400_000;

/** Everything is there once this has returned undefined. */
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
 * An authority, and the one certificate that it signs before its key is thrown away: what the application trusts from
 * now on can be signed by nobody. They are kept, for a sidecar that restarts: clients read ca.crt once, when they start.
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
  // Last: what is there without it is not whole, and is made again.
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

/** Links, so that who reads follows the kubelet's rotation by itself, also while we are down. */
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
    return undefined; // nothing there yet, or no link: it is replaced
  }
}

/** The cluster's own authorities stay in it: some clients go by the service's name and so past us. */
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

/** Whole or not at all: a client may read at any moment. */
function replace(path: string, text: string, mode: number): void {
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
}

/** Writes the CA again at each change of the cluster's; `onChange` hears of it, or why it could not be. */
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
