/** The apiservers with which an incident is replayed: embedded ones (embedded-setting.ts) or real ones. */
import type { Failure } from "../../src/base/failure.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import type { WriteBeat } from "../story/beat.ts";
import type { DemoBackend, DemoFiles } from "../story/files.ts";

/** What one incident needs in addition to the `Scene` of apiservers, proxies and clients that all incidents share. */
export type Wishes = {
  /** True if deletions must be sent with an old version, as some releases of Kubernetes did; default: false. */
  readonly tellsOldVersions?: boolean;
  /**
   * Makes the certificate that apiserver-2 uses for connections to itself; default: none. Not called for real
   * apiservers, because they create their own.
   */
  readonly loopback?: (files: DemoFiles) => Pair;
  /** Returns additional configuration lines for watchkeeper's listener; default: none. */
  readonly listener?: (files: DemoFiles) => string;
};

export type Setting = {
  readonly backends: readonly DemoBackend[];
  /** CA bundle of the apiservers in PEM; "": the demo's own CA signed their certificates. */
  readonly ca: string;
  readonly token: string;
  readonly writeBeat: WriteBeat;
  /** The old version that the apiserver puts into a DELETED event, as text for the output, such as "version 1". */
  readonly oldVersion: string;
  /** Kind of the incident that watchkeeper must report when an apiserver stops answering. */
  readonly silentKind: string;
  /** Begins to drop all packets to and from an apiserver. */
  silence(name: string): Promise<void>;
  /** Returns a bearer token of a pod in the namespace "default". The token allows access to leases there. */
  podToken(pod: string): Promise<string>;
  stop(): Promise<void>;
};

export type Settings = {
  /** Description of the apiservers for the output, such as "two apiservers". */
  readonly about: string;
  make(wishes: Wishes, files: DemoFiles): Promise<Setting | Failure>;
};
