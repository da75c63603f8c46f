/**
 * Starts the apiservers of an incident: two embedded ones that share a store. Needs no real cluster and no root
 * privileges.
 */
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import type { Encoding } from "../apiserver/apiserver.ts";
import { newCluster } from "../apiserver/cluster.ts";
import { Embedded, startAll, stopAll } from "../apiserver/embedded.ts";
import { type Encode, encodeJson } from "../apiserver/watch-stream.ts";
import { mapOf } from "../objects/json.ts";
import type { Store } from "../objects/store.ts";
import { beatInto } from "../story/beat.ts";
import { type DemoFiles, embeddedAt } from "../story/files.ts";
import type { Setting, Settings, Wishes } from "./setting.ts";

export const embeddedSettings: Settings = { about: "two apiservers", make };

/** Encodes events as JSON. A deleted object gets an old version, and not the version of its deletion. */
export const encodeOld: Encode = (type, object) =>
  encodeJson(
    type,
    type === "DELETED"
      ? { ...object, metadata: { ...mapOf(object["metadata"]), resourceVersion: "1" } }
      : object,
  );

async function make(wishes: Wishes, files: DemoFiles): Promise<Setting | Failure> {
  const store = newCluster(wallClock);
  const apiservers = ["apiserver-1", "apiserver-2"].map((name) =>
    apiserverOf(name, { store, files, wishes }),
  );
  const ports = await startAll(apiservers);
  if (ports instanceof Failure) return ports;
  const backends = embeddedAt(ports);
  return {
    backends,
    ca: "",
    token: "demo",
    writeBeat: beatInto(store, wallClock),
    oldVersion: "version 1, from long ago",
    // Watchkeeper must report this kind and not "backend-blackholed", because the kernel still accepts connections for
    // the blocked relay.
    silentKind: "backend-frozen",
    async silence(name) {
      await apiservers.find((one) => one.name === name)?.strike("hole");
    },
    podToken: (pod) => Promise.resolve(unsignedToken(pod)),
    stop: () => stopAll(apiservers),
  };
}

const encodingFor = (): Encoding => ({ contentType: "application/json", encode: encodeOld });

type ApiserverParts = { readonly store: Store; readonly files: DemoFiles; readonly wishes: Wishes };

function apiserverOf(name: string, { store, files, wishes }: ApiserverParts): Embedded {
  const { tellsOldVersions = false, loopback } = wishes;
  const own = name === "apiserver-2" && loopback !== undefined ? { loopback: loopback(files) } : {};
  const encoding = tellsOldVersions ? { encodingFor } : {};
  return new Embedded({ name, store, clock: wallClock, pair: files.issue("apiserver"), ...encoding, ...own });
}

/** Returns a pod's token in Kubernetes' format, but without a valid signature: embedded apiservers do not verify it. */
function unsignedToken(pod: string): string {
  const claims = {
    sub: "system:serviceaccount:default:nginx",
    "kubernetes.io": { namespace: "default", pod: { name: pod } },
  };
  return `${part({ alg: "RS256" })}.${part(claims)}.${Buffer.from("unsigned").toString("base64url")}`;
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
