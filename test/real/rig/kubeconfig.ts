/** Kubeconfigs are written as JSON, which every client reads as YAML. */
import { renameSync, writeFileSync } from "node:fs";

export type Access = { readonly url: string; readonly caFile: string; readonly token: string };

export function kubeconfig({ url, caFile, token }: Access): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "rig",
    clusters: [{ name: "rig", cluster: { server: url, "certificate-authority": caFile } }],
    users: [{ name: "rig", user: { token } }],
    contexts: [{ name: "rig", context: { cluster: "rig", user: "rig", namespace: "default" } }],
  });
}

/** Aside, and renamed: a client that was started a moment ago may be about to read the one before. */
export function writeKubeconfig(file: string, access: Access): string {
  writeFileSync(`${file}.new`, kubeconfig(access), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return file;
}
