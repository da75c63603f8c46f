/** Kubeconfigs are written as JSON, which every client reads as YAML. */
import { writeFileSync } from "node:fs";

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

export function writeKubeconfig(file: string, access: Access): string {
  writeFileSync(file, kubeconfig(access), { mode: 0o600 });
  return file;
}
