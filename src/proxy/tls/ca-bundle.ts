/**
 * CA certificates from a file, with which backends or clients are verified. The file is reloaded when it changes. The
 * last usable CAs stay in use until new ones have passed every test, because with a wrong CA all new connections would
 * fail (D10).
 */
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { type Reloading, ReloadingFile } from "./reloading-file.ts";
import { certificatesIn, outOfDate } from "./serving-pair.ts";

export type CaBundleOptions = Reloading & {
  readonly file: string;
  /** Returns the reason why these CAs (PEM) cannot be used; undefined if they can. */
  readonly prove: (ca: string) => Promise<Failure | undefined>;
  readonly onSwap: () => void;
};

export class CaBundle extends ReloadingFile<string> {
  readonly name: string;
  readonly #first: string;

  private constructor(options: CaBundleOptions, first: string) {
    const { name, file } = options;
    const load = (was: string | undefined): Promise<string | Failure> => loadOther(options, was);
    super({ ...options, files: [file], load, isSame, notAfterMs: lastEndOf }, first);
    this.name = name;
    this.#first = first;
  }

  /**
   * Loads the first CAs. Any readable file is accepted, because there are no older CAs that could stay in use. Call
   * `start` to watch the file for changes.
   */
  static load(options: CaBundleOptions): CaBundle | Failure {
    const ca = loadCa(options.file);
    return ca instanceof Failure ? ca : new CaBundle(options, ca);
  }

  /** Loads the CAs of another file. They must pass the same tests as those of a changed file. */
  static async loadOther(options: CaBundleOptions): Promise<CaBundle | Failure> {
    const ca = await loadOther(options, undefined);
    return ca instanceof Failure ? ca : new CaBundle(options, ca);
  }

  /** The CAs in use, as PEM. */
  get ca(): string {
    return this.current ?? this.#first;
  }

  /** The latest expiry among the CAs, in ms since 1970. */
  get notAfterMs(): number {
    return lastEndOf(this.ca);
  }

  start(): void {
    this.journalLoaded(this.ca);
    this.watch();
  }
}

const isSame = (one: string, other: string): boolean => one === other;

async function loadOther(
  { file, clock, prove }: CaBundleOptions,
  was: string | undefined,
): Promise<string | Failure> {
  const ca = loadCa(file);
  if (ca instanceof Failure || ca === was) return ca;
  const failure = outlived(ca, clock.wall()) ?? (await prove(ca));
  return failure === undefined ? ca : unusable(`"${file}"`, failure);
}

/** Returns only the PEM certificates of a CA file, without its other text; a Failure if the file is unusable. */
export function loadCa(file: string): string | Failure {
  const text = readPem(file);
  if (text instanceof Failure) return text;
  const certificates = certificatesIn(text);
  if (!(certificates instanceof Failure)) return certificates.map(String).join("");
  return unusable(`"${file}"`, certificates);
}

export function readPem(file: string): string | Failure {
  const text = readText(file, limits.certificateBytes);
  return text instanceof Failure ? unusable(`"${file}"`, text) : text;
}

export function unusable(files: string, { message, cause }: Failure): Failure {
  return new Failure("bad-file", "proxy", `Cannot use ${files}: ${message}`, cause);
}

/**
 * Returns the latest expiry among CAs from `loadCa`, in ms since 1970. The earliest expiry is harmless: when a CA is
 * rotated, the old one may expire first, and by then the new one has signed all certificates.
 */
export function lastEndOf(ca: string): number {
  const certificates = certificatesIn(ca);
  if (certificates instanceof Failure) return 0;
  return Math.max(...certificates.map(({ validToDate }) => validToDate.getTime()));
}

/** Returns a Failure if none of these CAs is valid now, because every certificate that they signed would be refused. */
function outlived(ca: string, wallMs: number): Failure | undefined {
  const certificates = certificatesIn(ca);
  if (certificates instanceof Failure) return certificates;
  const problems = certificates.map((certificate) => outOfDate([certificate], wallMs));
  return problems.every((problem) => problem !== undefined) ? problems[0] : undefined;
}
