/**
 * kustomize renders objects and connects to no apiserver. kubectl applies, compares and deletes the rendered objects.
 */
import * as assert from "uvu/assert";
import { byBuild } from "../rig/built.ts";
import { pathOf } from "../rig/parts.ts";
import { Kubectl, writeKustomization } from "./kubectl.ts";
import type { Operation, Scene } from "./operation.ts";

async function build(scene: Scene): Promise<void> {
  const { out: input } = await scene.run(pathOf("kustomize"), ["build", writeKustomization(scene)]);
  const kubectl = new Kubectl("kubectl", scene);
  await kubectl.run(["apply", "-f", "-"], { input });
  await kubectl.run(["diff", "-f", "-"], { input });
  type Data = { readonly data: { readonly key: string } };
  const path = scene.path("configmaps/blue-a");
  assert.is((await scene.object<Data>(path))?.data.key, "from the overlay");
  await kubectl.run(["delete", "-f", "-"], { input });
  assert.is(await scene.object(path), undefined);
}

export const kustomizeOperations: readonly Operation[] = [
  {
    client: "kustomize",
    name: "build, apply, diff, delete",
    needs: ["kubectl"],
    prepare: () => byBuild("kustomize", "go"),
    isLong: false,
    run: build,
  },
];
