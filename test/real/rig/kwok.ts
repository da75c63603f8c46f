/** A node that KWOK plays: its pods answer logs -f, exec, attach, cp and port-forward over real kubelet streams. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "./ask.ts";
import { Child } from "./child.ts";
import { pathOf } from "./parts.ts";
import type { Pki } from "./pki.ts";

const kubeletPort = 10_250;

export type NodeStart = {
  readonly folder: string;
  /** Where the apiservers reach the kubelet, and where forwarded ports end. */
  readonly address: string;
  readonly pki: Pki;
  /** An admin's kubeconfig for the apiserver that KWOK itself talks to. */
  readonly kubeconfigFile: string;
  readonly url: string;
  readonly token: string;
};

export class PodNode {
  readonly name = "node-1";
  /** Every forwarded port of every pod ends at this port of the node's address: a test listens there. */
  readonly forwardPort = 8_080;
  readonly address: string;
  /** What `exec` sees as its working directory. */
  readonly podFolder: string;
  readonly #logFile: string;
  readonly #child: Child;

  private constructor(start: NodeStart) {
    this.address = start.address;
    this.podFolder = join(start.folder, "pod");
    this.#logFile = join(start.folder, "pod.log");
    mkdirSync(this.podFolder);
    writeFileSync(this.#logFile, "");
    const configFile = join(start.folder, "kwok.yaml");
    writeFileSync(configFile, this.#config(start));
    this.#child = new Child({
      name: "kwok",
      command: pathOf("kwok"),
      args: ["--config", configFile, "--kubeconfig", start.kubeconfigFile, "--server-address", this.#kubelet],
      logFile: join(start.folder, "kwok.log"),
    });
  }

  get #kubelet(): string {
    return `${this.address}:${kubeletPort}`;
  }

  #config({ pki, address }: NodeStart): string {
    const pair = pki.issue({ name: "kubelet", subject: `/CN=${this.name}`, names: [`IP:${address}`] });
    const values: Record<string, string> = {
      NODE: this.name,
      ADDRESS: address,
      PORT: String(kubeletPort),
      CERT: pair.certFile,
      KEY: pair.keyFile,
      FOLDER: this.podFolder,
      LOGS: this.#logFile,
      FORWARD: String(this.forwardPort),
    };
    const template = readFileSync(new URL("./kwok.yaml", import.meta.url), "utf8");
    return template.replace(/<([A-Z]+)>/g, (whole, name: string) => values[name] ?? whole);
  }

  static async start(start: NodeStart): Promise<PodNode> {
    const node = new PodNode(start);
    const admin = { url: start.url, caFile: start.pki.ca.certFile, token: start.token };
    const body = { apiVersion: "v1", kind: "Node", metadata: { name: node.name } };
    await ask(admin, { method: "POST", path: "/api/v1/nodes", body });
    await node.#child.ready(30_000, async () => {
      const { text } = await ask(admin, { path: `/api/v1/nodes/${node.name}` });
      return /"type":"Ready","status":"True"/.test(text);
    });
    return node;
  }

  /** One more line on every pod's standard output. */
  log(line: string): void {
    appendFileSync(this.#logFile, `${new Date().toISOString()} stdout F ${line}\n`);
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}
