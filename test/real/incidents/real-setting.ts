/** The setting of an incident's story: two real kube-apiservers on one etcd, each in a network namespace of its own. */
import { readFileSync } from "node:fs";
import type { Setting, Settings, Wishes } from "../../../demo/incidents/setting.ts";
import { beatObject } from "../../../demo/story/beat.ts";
import type { DemoBackend, DemoFiles } from "../../../demo/story/files.ts";
import { ask, order, type Server } from "../rig/ask.ts";
import { type Cluster, startCluster } from "../rig/cluster.ts";
import { OldVersions } from "./old-versions.ts";

const core = "/api/v1/namespaces";
const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

export const realSettings: Settings = { about: "two kube-apiservers v1.36.1 on one etcd", make };

async function make(wishes: Wishes, files: DemoFiles): Promise<Setting> {
  const cluster = await startCluster({ apiservers: 2 });
  // Creates what a story needs and no controller creates here.
  await order(cluster.admin, {
    method: "POST",
    path: `${core}/kube-public/configmaps`,
    body: beatObject(0),
  });
  const relays = wishes.tellsOldVersions === true ? await relaysOf(cluster, files) : [];
  const writer = new Writer(cluster);
  return {
    backends: relays.length > 0 ? relays.map(({ backend }) => backend) : backendsOf(cluster),
    ca: readFileSync(cluster.caFile, "utf8"),
    token: cluster.token,
    writeBeat: (count) => writer.write(count),
    oldVersion: "the version that it had while it lived",
    silentKind: "backend-blackholed",
    async silence(name) {
      const number = nameOf.indexOf(name);
      await writer.leave(number);
      cluster.apiserver(number).blackHole();
    },
    podToken: () => accountToken(cluster.admin),
    async stop() {
      for (const relay of relays) relay.stop();
      await cluster.stop();
    },
  };
}

const nameOf: readonly string[] = ["apiserver-1", "apiserver-2"];

function backendsOf({ apiservers }: Cluster): readonly DemoBackend[] {
  return apiservers.map(({ address, url }, number) => ({
    name: nameOf[number] ?? "",
    host: address,
    port: Number(new URL(url).port),
  }));
}

/** Starts one relay in front of each apiserver, on a port of the loopback address. */
function relaysOf(cluster: Cluster, files: DemoFiles): Promise<readonly OldVersions[]> {
  const ca = readFileSync(cluster.caFile, "utf8");
  return Promise.all(
    backendsOf(cluster).map((backend) => OldVersions.start({ backend, ca, pair: files.issue("apiserver") })),
  );
}

/** Updates the story's counter object directly on an apiserver that has no fault. */
class Writer {
  readonly #cluster: Cluster;
  #number = 0;
  #under: Promise<void> = Promise.resolve();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  write(count: number): Promise<void> {
    this.#under = this.#put(count);
    return this.#under;
  }

  /** Writes to the other apiserver from now on. Resolves when no write to apiserver `number` is in progress. */
  async leave(number: number): Promise<void> {
    this.#number = number === 0 ? 1 : 0;
    await this.#under;
  }

  async #put(count: number): Promise<void> {
    const { url } = this.#cluster.apiserver(this.#number);
    const path = `${core}/kube-public/configmaps/beat`;
    const server = { ...this.#cluster.admin, url };
    // If the end of the story interrupts a write, nothing is lost. Any other failed write shows as a missing event.
    await ask(server, { method: "PUT", path, body: beatObject(count) }).catch(() => undefined);
  }
}

/**
 * Returns a token of a service account that is not bound to a pod. Today's apiservers reject a pod-bound token once its
 * pod is deleted, so the story's clients that outlive their pod must hold another credential.
 */
async function accountToken(admin: Server): Promise<string> {
  const post = (path: string, body: object): Promise<string> => order(admin, { method: "POST", path, body });
  const metadata = { name: "nginx" };
  await post(`${core}/default/serviceaccounts`, { metadata });
  await post(`${rbac}/roles`, {
    metadata,
    rules: [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["*"] }],
  });
  await post(`${rbac}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "nginx" },
    subjects: [{ kind: "ServiceAccount", name: "nginx", namespace: "default" }],
  });
  const answer = await post(`${core}/default/serviceaccounts/nginx/token`, {
    spec: { expirationSeconds: 600 },
  });
  const { status } = JSON.parse(answer) as { readonly status: { readonly token: string } };
  return status.token;
}
