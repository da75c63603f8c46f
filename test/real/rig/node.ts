/**
 * A node whose pods answer logs -f, exec, attach, cp and port-forward. KWOK simulates the node, and go/kubelet
 * implements the streams.
 */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, order } from "./ask.ts";
import { Child } from "./child.ts";
import { pathOf } from "./parts.ts";
import type { Pki } from "./pki.ts";

const kubeletPort = 10_250;

export type NodeStart = {
  readonly folder: string;
  /** The address at which the apiservers reach the kubelet. Forwarded ports lead to it too. */
  readonly address: string;
  readonly pki: Pki;
  /** An admin's kubeconfig for the apiserver that KWOK connects to. */
  readonly kubeconfigFile: string;
  readonly url: string;
  readonly token: string;
};

export class PodNode {
  readonly name = "node-1";
  /** Every forwarded port of every pod leads to this port of the node's address. A test listens on it. */
  readonly forwardPort = 8_080;
  readonly address: string;
  /** Working directory of commands that run with `exec`. */
  readonly podFolder: string;
  readonly #logFile: string;
  readonly #kubelet: Child;
  readonly #kwok: Child;

  private constructor(start: NodeStart) {
    this.address = start.address;
    this.podFolder = join(start.folder, "pod");
    this.#logFile = join(start.folder, "pod.log");
    mkdirSync(this.podFolder);
    writeFileSync(this.#logFile, "");
    this.#kubelet = this.#startKubelet(start);
    this.#kwok = this.#startKwok(start);
  }

  #startKubelet({ pki, folder, address }: NodeStart): Child {
    const pair = pki.issue({ name: "kubelet", subject: `/CN=${this.name}`, names: [`IP:${address}`] });
    const args = [`-listen=${address}:${kubeletPort}`, `-cert=${pair.certFile}`, `-key=${pair.keyFile}`];
    args.push(
      `-folder=${this.podFolder}`,
      `-log=${this.#logFile}`,
      `-forward=${address}:${this.forwardPort}`,
    );
    return new Child({
      name: "kubelet",
      command: pathOf("kubelet"),
      args,
      logFile: join(folder, "kubelet.log"),
    });
  }

  #startKwok({ folder, kubeconfigFile }: NodeStart): Child {
    const values: Record<string, string> = {
      NODE: this.name,
      ADDRESS: this.address,
      PORT: String(kubeletPort),
    };
    const template = readFileSync(new URL("./kwok.yaml", import.meta.url), "utf8");
    const configFile = join(folder, "kwok.yaml");
    writeFileSync(
      configFile,
      template.replace(/<([A-Z]+)>/g, (whole, name: string) => values[name] ?? whole),
    );
    const args = ["--config", configFile, "--kubeconfig", kubeconfigFile];
    return new Child({ name: "kwok", command: pathOf("kwok"), args, logFile: join(folder, "kwok.log") });
  }

  static async start(start: NodeStart): Promise<PodNode> {
    const node = new PodNode(start);
    const admin = { url: start.url, caFile: start.pki.ca.certFile, token: start.token };
    const body = { apiVersion: "v1", kind: "Node", metadata: { name: node.name } };
    await order(admin, { method: "POST", path: "/api/v1/nodes", body });
    await node.#kwok.ready(30_000, async () => {
      const { text } = await ask(admin, { path: `/api/v1/nodes/${node.name}` });
      return /"type":"Ready","status":"True"/.test(text);
    });
    if (!node.#kubelet.isRunning) throw new Error(`The kubelet ended:\n${node.#kubelet.tail()}`);
    return node;
  }

  /** Adds a line to the standard output of every pod. */
  log(line: string): void {
    appendFileSync(this.#logFile, `${line}\n`);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#kwok.stop(), this.#kubelet.stop()]);
  }
}
