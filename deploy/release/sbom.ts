/**
 * `npm run sbom`: prints an SBOM (CycloneDX) from package-lock.json and base.json. `npm sbom --omit dev` would not do,
 * because it omits also the packages that both the program and a development tool need, such as ajv and yaml.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import base from "./base.json" with { type: "json" };

type Locked = {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
};

type Lock = { readonly version: string; readonly packages: Readonly<Record<string, Locked>> };

function component(name: string, { version, license, integrity }: Locked): object {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [algorithm = "", hash = ""] = (integrity ?? "").split("-");
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    ...(license && { licenses: [{ expression: license }] }),
    ...(algorithm === "sha512" && {
      hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }],
    }),
  };
}

/** Returns the SBOM. It contains no time and no random number, so the same package-lock.json gives the same text. */
export function sbom(): string {
  const path = join(resolve(import.meta.dirname, "../.."), "package-lock.json");
  const lock: Lock = JSON.parse(readFileSync(path, "utf8"));
  const { version, packages } = lock;
  const locked = Object.entries(packages)
    .filter(([place, { dev, devOptional }]) => place !== "" && dev !== true && devOptional !== true)
    .map(([place, one]) => [place.slice(place.lastIndexOf("node_modules/") + 13), one] as const);
  const names = new Set(locked.map(([name]) => name));
  const nodes = Object.values(base.node)
    .filter((one) => !names.has(one.package))
    .map((one) => [one.package, one] as const);
  const debian = Object.entries(base.debian).flatMap(([architecture, all]) =>
    all.map(({ name, version: own, sha256 }) => {
      const purl = `pkg:deb/debian/${name}@${encodeURIComponent(own)}?arch=${architecture}`;
      const hashes = [{ alg: "SHA-256", content: sha256 }];
      return { type: "library", "bom-ref": purl, name, version: own, purl, hashes };
    }),
  );
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      component: { type: "application", "bom-ref": `watchkeeper@${version}`, name: "watchkeeper", version },
    },
    components: [...[...locked, ...nodes].map(([name, one]) => component(name, one)), ...debian],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

if (import.meta.main) process.stdout.write(sbom());
