/** Types of a story's apiservers: embedded ones that are started for it (embedded-setting.ts), or real ones. */
import type { Failure } from "../../base/failure.ts";
import type { Pair } from "../../pki/pki.ts";
import type { WriteBeat } from "../story/beat.ts";
import type { DemoBackend, DemoFiles } from "../story/files.ts";

/** What a story needs in addition to the common scene. */
export type Wishes = {
  /** True if the apiservers send deletions with an old version, as some releases did; default: false. */
  readonly tellsOldVersions?: boolean;
  /** Makes the loopback certificate of apiserver-2. Real apiservers create their own. */
  readonly loopback?: (files: DemoFiles) => Pair;
  /** Returns additional lines for watchkeeper's listener; default: none. */
  readonly listener?: (files: DemoFiles) => string;
};

export type Setting = {
  readonly backends: readonly DemoBackend[];
  /** CA bundle of the apiservers in PEM; "": the demo's own CA. */
  readonly ca: string;
  readonly token: string;
  readonly writeBeat: WriteBeat;
  /** Description of the old version in a deletion, for the output. */
  readonly oldVersion: string;
  /** Kind of the incident when an apiserver falls silent. */
  readonly silentKind: string;
  /** Drops all packets to and from an apiserver from now on. */
  silence(name: string): Promise<void>;
  /** Returns a bearer token for the process of a pod in namespace "default", which may use leases there. */
  podToken(pod: string): Promise<string>;
  stop(): Promise<void>;
};

export type Settings = {
  /** Description for the output: "two apiservers". */
  readonly about: string;
  make(wishes: Wishes, files: DemoFiles): Promise<Setting | Failure>;
};
