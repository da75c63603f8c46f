/**
 * A stage is the setting in which the pages' commands are run: a proxy in front of two embedded apiservers, cp-1 and
 * cp-2, and a client that watches and holds a lock. To have an incident to show, cp-2's loopback certificate
 * expires soon.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Apiserver } from "../../demo/apiserver/apiserver.ts";
import { newCluster } from "../../demo/apiserver/cluster.ts";
import { Host } from "../../demo/apiserver/host.ts";
import { DemoClient } from "../../demo/story/client.ts";
import { DemoFiles, embeddedAt } from "../../demo/story/files.ts";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../src/main.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import type { Words } from "./shell.ts";

const lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const haproxy = `defaults
  timeout client 20s
  timeout server 20s
frontend apiserver
  bind *:8443
  mode tcp
  default_backend apiserverbackend
backend apiserverbackend
  option httpchk GET /healthz
  server cp-1 10.0.0.11:6443 check
  server cp-2 10.0.0.12:6443 check
`;

export class Stage {
  readonly #files: DemoFiles;
  readonly #hosts: readonly Host[];
  readonly #ports: readonly number[];
  readonly #running: Running;
  readonly #client: DemoClient;
  readonly #configFile: string;
  readonly kubeconfig: string;
  #traffic: NodeJS.Timeout | undefined;

  private constructor(files: DemoFiles, hosts: readonly Host[], ports: readonly number[], running: Running) {
    this.#files = files;
    this.#hosts = hosts;
    this.#ports = ports;
    this.#running = running;
    this.#configFile = join(files.directory, "watchkeeper.yaml");
    this.kubeconfig = files.writeKubeconfig(`127.0.0.1:${ports[0]}`);
    const port = Number(running.addresses.get("kube")?.split(":").at(-1));
    const fields = { authorization: "Bearer demo", "user-agent": "manager/v1" };
    this.#client = new DemoClient({ port, ca: files.authority.certificate, fields });
  }

  static async start(): Promise<Stage> {
    const files = await DemoFiles.make(wallClock);
    const store = newCluster(wallClock);
    const soon = wallClock.wall() + 20 * 86_400_000;
    const loopback = files.authority.issue({ name: "apiserver-loopback-client", notAfter: soon });
    const hosts = ["cp-1", "cp-2"].map((name) => {
      const apiserver = new Apiserver({ name, store, clock: wallClock });
      const own = name === "cp-2" ? { loopback } : {};
      return new Host({ apiserver, ...files.issue("apiserver"), ...own });
    });
    const ports = await Promise.all(hosts.map(async (host) => Number(await host.start())));
    const file = files.writeConfig(embeddedAt(ports), 0);
    const text = readFileSync(file, "utf8")
      .replaceAll("name: apiserver-", "name: cp-")
      // Logs all requests, so that `tap` has something to show.
      .replace("format: Text", "format: Text\n  accessLog: All");
    writeFileSync(file, text);
    const config = parseConfig(text, file);
    if (isProblems(config)) throw new Error(config.map((problem) => lineOf(problem)).join("\n"));
    const running = await startWatchkeeper(config, { journal: new Journal(wallClock) });
    if (running instanceof Failure) throw new Error(running.message);
    const stage = new Stage(files, hosts, ports, running);
    await stage.#begin();
    return stage;
  }

  /** What a reader would write in place of the placeholders and addresses on a page. */
  get words(): Words {
    return [
      [/(HOST|127\.0\.0\.1):7481/g, this.#running.adminAddress],
      [/127\.0\.0\.1:7480/g, this.#running.apiAddress],
      [/get clients ADDRESS\b/g, "get clients 127.0.0.1"],
      [/\bADDRESS\b/g, `127.0.0.1:${this.#ports[0]}`],
      [/\bFILE$/g, this.#configFile],
      // Incident 1 exists on this stage, and one second of waiting is enough.
      [/explain 42$/g, "explain 1"],
      [/explain [A-Za-z][A-Za-z-]+$/g, "explain loopback-certificate-expiring"],
      [/:PORT$/g, `:${this.#ports[0]}`],
      [/--for 60$/g, "--for 1"],
      // On a terminal, jq writes each line at once. In the test it needs --unbuffered for that.
      [/\| jq \.URI$/g, "| jq --unbuffered .URI"],
    ];
  }

  get env(): NodeJS.ProcessEnv {
    return { WATCHKEEPER_ADMIN: this.#running.apiAddress, KUBECONFIG: this.kubeconfig };
  }

  /**
   * Writes into a shell's folder the files that a reader has: kubeadm's certificates, an old haproxy.cfg, and a
   * workload.
   */
  furnish(folder: string): void {
    const pki = join(folder, "etc/kubernetes/pki");
    mkdirSync(pki, { recursive: true });
    writeFileSync(join(pki, "ca.crt"), this.#files.authority.certificate);
    for (const name of ["apiserver", "watchkeeper", "front-proxy-client"]) {
      const isClient = name === "front-proxy-client";
      const { authority } = this.#files;
      const { certificate, key } = isClient
        ? authority.issue({ name, usage: "client" })
        : this.#files.issue(name);
      writeFileSync(join(pki, `${name}.crt`), certificate);
      writeFileSync(join(pki, `${name}.key`), key, { mode: 0o600 });
    }
    mkdirSync(join(folder, "etc/haproxy"));
    writeFileSync(join(folder, "etc/haproxy/haproxy.cfg"), haproxy);
    const app = readFileSync("deploy/sidecar-example/app.yaml");
    for (const name of ["app.yaml", "deployment.yaml"]) writeFileSync(join(folder, name), app);
  }

  /**
   * Replaces the addresses and paths in the configurations that a command has written into the folder by those of this
   * stage.
   */
  localize(folder: string): void {
    const places = [folder, join(folder, "etc/watchkeeper")].filter((place) => existsSync(place));
    const files = places.flatMap((place) => readdirSync(place).map((name) => join(place, name)));
    for (const file of files.filter((one) => one.endsWith(".yaml") && statSync(one).isFile())) {
      const text = readFileSync(file, "utf8");
      if (!text.includes("kind: WatchkeeperConfiguration")) continue;
      const here = text
        .replaceAll(/https:\/\/10\.0\.0\.1(\d):6443/g, (_, last: string) => this.#url(Number(last)))
        .replaceAll(/(?<![\w/.-])\/etc\//g, `${folder}/etc/`)
        .replaceAll(/(address: )"?(\[::\]:8443|127\.0\.0\.1:7443)"?/g, "$1127.0.0.1:0")
        .replaceAll(/^admin:(?: .*\n|\n(?: .*\n)+)/gm, "");
      writeFileSync(file, `${here}\nadmin: {address: 127.0.0.1:0, metricsAddress: 127.0.0.1:0}\n`);
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#traffic);
    this.#client.close();
    await this.#running.stop(AbortSignal.timeout(500));
    for (const host of this.#hosts) host.stop();
    this.#files.remove();
  }

  #url(number: number): string {
    return `https://127.0.0.1:${this.#ports[(number - 1) % this.#ports.length]}`;
  }

  /**
   * Starts the client. Waits until both backends are ready and the incident about the certificate is active, so that
   * every command has something to show.
   */
  async #begin(): Promise<void> {
    const spec = {
      holderIdentity: "manager-0_1",
      leaseDurationSeconds: 15,
      renewTime: "2026-01-01T00:00:00Z",
    };
    await this.#until(async () => (await this.#client.ask("GET /readyz")) === 200);
    await this.#client.ask(`POST ${lease}`, { metadata: { name: "leader" }, spec });
    await this.#client.watch("/api/v1/namespaces/default/configmaps?watch=1");
    this.#traffic = setInterval(
      () => void this.#client.ask(`PUT ${lease}/leader`, { metadata: { name: "leader" }, spec }),
      500,
    );
    const api = `http://${this.#running.apiAddress}/api/v1`;
    for (const asked of ["backends?state=ready", "incidents?kind=loopback-certificate-expiring"]) {
      const least = asked.startsWith("backends") ? 2 : 1;
      await this.#until(async () => {
        const answer = (await (await fetch(`${api}/${asked}`)).json()) as { readonly matching: number };
        return answer.matching >= least;
      });
    }
  }

  async #until(holds: () => Promise<boolean>): Promise<void> {
    for (let tries = 0; tries < 400; tries += 1) {
      if (await holds()) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error("The stage was not ready in 20 s");
  }
}
