/** Two embedded apiservers on one store: they need neither a cluster nor root privileges. */
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Encoding } from "../apiserver/apiserver.ts";
import { newCluster } from "../apiserver/cluster.ts";
import { Embedded } from "../apiserver/embedded.ts";
import { type Encode, encodeJson } from "../apiserver/watch-stream.ts";
import { mapOf } from "../objects/json.ts";
import type { Store } from "../objects/store.ts";
import { beatInto } from "../story/beat.ts";
import { type DemoFiles, embeddedAt } from "../story/files.ts";
import type { Setting, Settings, Wishes } from "./setting.ts";

export const embeddedSettings: Settings = { about: "two apiservers", make };

/** Encodes a deletion with an old version. A deleted object normally has its latest version. */
export const encodeOld: Encode = (type, object) =>
  encodeJson(
    type,
    type === "DELETED"
      ? { ...object, metadata: { ...mapOf(object["metadata"]), resourceVersion: "1" } }
      : object,
  );

async function make(wishes: Wishes, files: DemoFiles): Promise<Setting | Failure> {
  const store = newCluster(wallClock);
  const hosts = ["apiserver-1", "apiserver-2"].map((name) => hostOf(name, { store, files, wishes }));
  const stop = async (): Promise<void> => {
    await Promise.all(hosts.map((host) => host.stop()));
  };
  const ports = await Promise.all(hosts.map((host) => host.start()));
  const bad = ports.find((port) => port instanceof Failure);
  if (bad !== undefined) {
    await stop();
    return bad;
  }
  const backends = embeddedAt(ports.map(Number));
  return {
    backends,
    ca: "",
    token: "demo",
    writeBeat: beatInto(store, wallClock),
    oldVersion: "version 1, from long ago",
    // The kernel in front of the relay still accepts sockets.
    silentKind: "backend-frozen",
    async silence(name) {
      await hosts.find((host) => host.name === name)?.strike("hole");
    },
    podToken: (pod) => Promise.resolve(unsignedToken(pod)),
    stop,
  };
}

const encodingFor = (): Encoding => ({ contentType: "application/json", encode: encodeOld });

type HostParts = { readonly store: Store; readonly files: DemoFiles; readonly wishes: Wishes };

function hostOf(name: string, { store, files, wishes }: HostParts): Embedded {
  const { tellsOldVersions = false, loopback } = wishes;
  const own = name === "apiserver-2" && loopback !== undefined ? { loopback: loopback(files) } : {};
  const encoding = tellsOldVersions ? { encodingFor } : {};
  return new Embedded({ name, store, clock: wallClock, pair: files.issue("apiserver"), ...encoding, ...own });
}

/** A pod's token in the format of Kubernetes, without a signature: embedded apiservers do not verify it. */
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
