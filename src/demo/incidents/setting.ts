/**
 * In front of whose apiservers a story is played: embedded ones, which are made for it (embedded-setting.ts), or real ones that
 * somebody else has started.
 */
import type { Failure } from "../../base/failure.ts";
import type { Pair } from "../../pki/pki.ts";
import type { WriteBeat } from "../story/beat.ts";
import type { DemoBackend, DemoFiles } from "../story/files.ts";

/** What a story wants of its scene beyond what every one has. */
export type Wishes = {
  /** Apiservers that can fall silent. */
  readonly isStruck?: boolean;
  /** Apiservers that tell a deletion with an old version, as some did. */
  readonly tellsOldVersions?: boolean;
  /** With what apiserver-2 talks to itself; real ones make that themselves. */
  readonly loopback?: (files: DemoFiles) => Pair;
  /** More lines of watchkeeper's listener. */
  readonly listener?: (files: DemoFiles) => string;
};

export type Setting = {
  /** Two. */
  readonly backends: readonly DemoBackend[];
  /** PEM: who vouches for them, where that is not the story's own authority. */
  readonly ca: string;
  /** The bearer that clients show. */
  readonly token: string;
  readonly writeBeat: WriteBeat;
  /** With which words a deletion's old version is told of. */
  readonly oldVersion: string;
  /** Of which kind the incident is when one falls silent. */
  readonly silentKind: string;
  /** From now on nothing gets through to it or from it; asked of those that are `isStruck`. */
  silence(name: string): Promise<void>;
  /** A bearer for the process of this pod in "default", good for leases there. */
  podToken(pod: string): Promise<string>;
  stop(): Promise<void>;
};

export type Settings = {
  /** What they are, for whoever is told: "two apiservers". */
  readonly about: string;
  make(wishes: Wishes, files: DemoFiles): Promise<Setting | Failure>;
};
