/** Kubeconfigs are written as JSON, which every client reads as YAML. */
import { renameSync, writeFileSync } from "node:fs";
import type { Pair } from "./pki.ts";

/** A client has a token or a certificate. */
export type Access = { readonly url: string; readonly caFile: string } & (
  | { readonly token: string }
  | { readonly pair: Pair }
);

function userOf(access: Access): object {
  if ("token" in access) return { token: access.token };
  return { "client-certificate": access.pair.certFile, "client-key": access.pair.keyFile };
}

export function kubeconfig(access: Access): string {
  const { url, caFile } = access;
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "rig",
    clusters: [{ name: "rig", cluster: { server: url, "certificate-authority": caFile } }],
    users: [{ name: "rig", user: userOf(access) }],
    contexts: [{ name: "rig", context: { cluster: "rig", user: "rig", namespace: "default" } }],
  });
}

/**
 * The new file replaces the old one by a rename, because a client that has just been started may be reading the old
 * one.
 */
export function writeKubeconfig(file: string, access: Access): string {
  writeFileSync(`${file}.new`, kubeconfig(access), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return file;
}
