/**
 * Prints the manifests of a Deployment, for clients inside the cluster or behind a load balancer. The manifests are the
 * files in deploy/deployment, with another namespace, image and number of replicas.
 */
import { readFileSync } from "node:fs";
import { packageFile } from "../../program/own-files.ts";

export type DeploymentWishes = {
  readonly image: string;
  readonly namespace: string;
  readonly replicas: number;
};

/** The names of the files, in the order in which the objects are created. */
const parts = ["namespace", "rbac", "config", "deployment", "service", "disruption", "network"];

export function deploymentText({ image, namespace, replicas }: DeploymentWishes): string {
  const isPlain = /^(?!(?:true|false|yes|no|on|off|y|n|null)$)[a-z]/.test(namespace);
  const named = isPlain ? namespace : JSON.stringify(namespace);
  const files = parts.map((name) => readFileSync(packageFile(`deploy/deployment/${name}.yaml`), "utf8"));
  return files
    .join("---\n")
    .replace(
      "kind: Namespace\nmetadata:\n  name: watchkeeper",
      `kind: Namespace\nmetadata:\n  name: ${named}`,
    )
    .replaceAll("namespace: watchkeeper", `namespace: ${named}`)
    .replace("image: SET-THE-IMAGE", `image: ${image}`)
    .replace("replicas: 2", `replicas: ${replicas}`);
}
