/** The apiservers of a story: embedded ones started for it (embedded-setting.ts), or real ones that already run. */
import type { Failure } from "../../base/failure.ts";
import type { Pair } from "../../pki/pki.ts";
import type { WriteBeat } from "../story/beat.ts";
import type { DemoBackend, DemoFiles } from "../story/files.ts";

/** What a story needs beyond the common scene. */
export type Wishes = {
  /** Apiservers that send deletions with an old version, as some releases did. */
  readonly tellsOldVersions?: boolean;
  /** The loopback certificate of apiserver-2; real apiservers create their own. */
  readonly loopback?: (files: DemoFiles) => Pair;
  /** Additional lines for watchkeeper's listener. */
  readonly listener?: (files: DemoFiles) => string;
};

export type Setting = {
  /** Two backends. */
  readonly backends: readonly DemoBackend[];
  /** PEM: the CA of the backends, if it is not the story's own. */
  readonly ca: string;
  /** The bearer token of the clients. */
  readonly token: string;
  readonly writeBeat: WriteBeat;
  /** How the story describes a deletion's old version. */
  readonly oldVersion: string;
  /** The kind of the incident when one falls silent. */
  readonly silentKind: string;
  /** From now on no packet passes in either direction. */
  silence(name: string): Promise<void>;
  /** A bearer token for the process of this pod in "default", with permission for leases there. */
  podToken(pod: string): Promise<string>;
  stop(): Promise<void>;
};

export type Settings = {
  /** A description for the output: "two apiservers". */
  readonly about: string;
  make(wishes: Wishes, files: DemoFiles): Promise<Setting | Failure>;
};
