/** Incident 000: one Secret with an invalid certificate, used for one host only, stops the whole ingress. */
import { writeFileSync } from "node:fs";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import { DemoClient } from "../story/client.ts";
import type { DemoFiles } from "../story/files.ts";
import { type NaiveHost, NaiveProcess } from "../story/naive-process.ts";
import { brokenOf, type Outcome, whenReported } from "./outcome.ts";
import type { Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

const [shop, bank] = ["shop.example.test", "bank.example.test"];
const warmMs = 1_000;
const badMs = 8_000;
const goodMs = 3_000;

export const wishes: Wishes = {
  listener(files) {
    const rows = [shop, bank].map((name) => {
      write(files, name, issue(files, name));
      const { certFile, keyFile } = hostIn(files, name);
      return `      - {serverNames: [${name}], tls: {certFile: ${certFile}, keyFile: ${keyFile}, reloadInterval: 1s}}\n`;
    });
    return `    hosts:\n${rows.join("")}`;
  },
};

export async function play(scene: Scene): Promise<Outcome | Failure> {
  const { files } = scene;
  const naive = naiveIngress(scene);
  const naivePort = await naive.start();
  if (naivePort instanceof Failure) return naivePort;
  const knockers = (port: number): Knocker[] =>
    [shop, bank].map((serverName) => new Knocker(scene, { port, serverName }));
  const ours = knockers(scene.portOf("watchkeeper"));
  const theirs = knockers(naivePort);
  await scene.pause(warmMs);
  for (const one of [...ours, ...theirs]) one.reset();
  scene.begin();
  scene.report(bank, "its secret is renewed, and the key is another certificate's");
  write(files, bank, { ...issue(files, bank), key: issue(files, bank).key });
  const reported = await scene.found("certificate-refused");
  await scene.pause(badMs - scene.ms);
  const answered = [shop, bank].map((name, index) => ({
    what: `new connections of ${name} answered`,
    without: String(theirs[index]),
    with: String(ours[index]),
  }));
  const areServed = ours.every((one) => one.isServed);
  scene.report(bank, "gets a valid secret");
  write(files, bank, issue(files, bank));
  await scene.pause(goodMs);
  const after = await scene.latest("certificate-refused");
  const crashes = naive.ends > 0 ? `by ${naive.ends} crashes` : "never";
  return {
    rows: [...answered, { what: "the operator is told", without: crashes, with: whenReported(reported) }],
    broken: brokenOf({
      "a connection was not answered": areServed,
      "the operator was not told": reported !== undefined,
      "it was not over when the secret was good": after?.isActive === false,
    }),
  };
}

function naiveIngress(scene: Scene): NaiveProcess {
  const { files, backends, backendCa: ca } = scene;
  const hosts = [shop, bank].map((name) => hostIn(files, name));
  const order = { backends, ca, pair: files.issue("naive"), hosts };
  const naive = new NaiveProcess(order, wallClock, (why) =>
    scene.report("naive proxy", `its process ends: ${why}`),
  );
  scene.atEnd(() => naive.stop());
  return naive;
}

function issue(files: DemoFiles, name: string): Pair {
  return files.authority.issue({ name, hosts: [name] });
}

function hostIn({ directory }: DemoFiles, name: string): NaiveHost {
  return { name, certFile: `${directory}/${name}.crt`, keyFile: `${directory}/${name}.key` };
}

function write(files: DemoFiles, name: string, { certificate, key }: Pair): void {
  const { certFile, keyFile } = hostIn(files, name);
  writeFileSync(certFile, certificate, { mode: 0o600 });
  writeFileSync(keyFile, key, { mode: 0o600 });
}

const periodMs = 200;

/** A client that repeatedly opens a connection, sends one GET, and counts the responses with status 200. */
export class Knocker {
  #asked = 0;
  #answered = 0;

  constructor(scene: Scene, { port, serverName }: { readonly port: number; readonly serverName: string }) {
    const ca = scene.files.authority.certificate;
    const fields = { authorization: `Bearer ${scene.setting.token}` };
    const knock = async (): Promise<void> => {
      for (;;) {
        const client = new DemoClient({ port, ca, serverName, fields });
        const status = await client.ask("GET /api/v1/namespaces/default");
        client.close();
        this.#asked += 1;
        if (status === 200) this.#answered += 1;
        await scene.pause(periodMs);
      }
    };
    void knock();
  }

  reset(): void {
    this.#asked = 0;
    this.#answered = 0;
  }

  get isServed(): boolean {
    return this.#asked > 0 && this.#asked === this.#answered;
  }

  toString(): string {
    return `${this.#answered} of ${this.#asked}`;
  }
}
