/**
 * Makes OCI image layouts (https://github.com/opencontainers/image-spec): files named by the digest of their content,
 * and an index.
 */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compressed } from "./tar.ts";

type Descriptor = {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
  readonly annotations?: Readonly<Record<string, string>>;
};

const oci = (name: string): string => `application/vnd.oci.image.${name}`;
export const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

/** A folder with the structure of an OCI image layout. */
export class Layout {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
    writeFileSync(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  put(mediaType: string, bytes: Buffer): Descriptor {
    const hex = sha256(bytes);
    writeFileSync(join(this.#folder, "blobs/sha256", hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  }

  putJson(mediaType: string, value: object): Descriptor {
    return this.put(mediaType, Buffer.from(JSON.stringify(value)));
  }

  manifest(config: Descriptor, layers: readonly Descriptor[], annotations: object): Descriptor {
    const mediaType = oci("manifest.v1+json");
    return this.putJson(mediaType, { schemaVersion: 2, mediaType, config, layers, annotations });
  }

  /** Adds an image of one architecture. Each layer is an uncompressed tar archive. */
  async image(
    architecture: string,
    layers: readonly Buffer[],
    config: { readonly config: object; readonly created: string },
    annotations: object,
  ): Promise<Descriptor> {
    const packed = await Promise.all(layers.map((layer) => compressed(layer)));
    const rootfs = { type: "layers", diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) };
    const described = this.putJson(oci("config.v1+json"), { architecture, os: "linux", ...config, rootfs });
    const blobs = packed.map((layer) => this.put(oci("layer.v1.tar+gzip"), layer));
    return { ...this.manifest(described, blobs, annotations), platform: { os: "linux", architecture } };
  }

  /**
   * Writes index.json: one reference with a tag, which points to one manifest or to an index of several. Returns its
   * digest.
   */
  tag(tag: string, manifests: readonly Descriptor[]): string {
    const mediaType = oci("index.v1+json");
    const [only] = manifests;
    const index = { schemaVersion: 2, mediaType, manifests };
    const top = manifests.length === 1 && only !== undefined ? only : this.putJson(mediaType, index);
    const tagged = { ...top, annotations: { "org.opencontainers.image.ref.name": tag } };
    writeFileSync(
      join(this.#folder, "index.json"),
      JSON.stringify({ schemaVersion: 2, mediaType, manifests: [tagged] }),
    );
    return top.digest;
  }
}
