/**
 * Lists of the JSON API in pages. Filters, sorts and cuts here, so that 50,000 watches overload neither the API's client
 * nor the thread that serves Kubernetes clients. Pure.
 */
import type { Clock } from "../../base/clock.ts";
import { inSlices } from "../../base/slices.ts";
import { adminLimits } from "./limits.ts";

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** One kind of list. */
export type Listing<T> = {
  /** The kind of its responses: "WatchList". */
  readonly kind: string;
  readonly rows: () => readonly T[];
  /** Values to filter and sort by; -1 stands for a missing number. */
  readonly columns: Readonly<Record<string, (row: T) => string | number>>;
  /** The default order: a column; with "-" before it, descending. */
  readonly sort: string;
  readonly view: (row: T) => Json;
};

export type JsonObject = { readonly [key: string]: Json | undefined };

/** The pages of a list. */
export type Page = Pick<Listing<never>, "kind" | "sort"> & {
  /** The columns that a query can refer to. */
  readonly columns: readonly string[];
  /** Returns one page for a query, or an error as a string. */
  readonly read: (query: string) => Promise<JsonObject | string>;
};

/** A parsed query, or an error as a string. */
type ListQuery = {
  readonly limit: number;
  readonly offset: number;
  readonly column: string;
  readonly isDescending: boolean;
  readonly text: string;
  readonly filters: readonly (readonly [column: string, value: string])[];
};

export function pagesOf<T>(listing: Listing<T>, clock: Clock): Page {
  const { kind, sort, columns } = listing;
  return { kind, sort, columns: Object.keys(columns), read: (query) => pageOf(listing, query, clock) };
}

/** The work on all rows is split over several turns of the event loop: other requests are served between two of them. */
export function pageOf<T>(listing: Listing<T>, query: string, clock: Clock): Promise<JsonObject | string> {
  const asked = askedIn(listing, query);
  if (typeof asked === "string") return Promise.resolve(asked);
  const gathered = new Gathered(listing, asked);
  return new Promise((resolve) => {
    inSlices(
      clock,
      gathered.all,
      (row) => gathered.add(row),
      () => resolve(gathered.page()),
    );
  });
}

type Keyed<T> = { readonly row: T; readonly key: string | number };

/** The matching rows so far. */
class Gathered<T> {
  readonly all: readonly T[];
  readonly #listing: Listing<T>;
  readonly #asked: ListQuery;
  readonly #texts: readonly Column<T>[];
  readonly #of: Column<T>;
  #matching = 0;
  /** The first rows in order, and the rows since the last sort. */
  #first: Keyed<T>[] = [];
  /** The last key that can be on the page, as known since the last sort. */
  #last: Keyed<T>["key"] | undefined;

  constructor(listing: Listing<T>, asked: ListQuery) {
    this.#listing = listing;
    this.#asked = asked;
    this.all = listing.rows();
    this.#texts = textColumns(listing, this.all[0]);
    this.#of = listing.columns[asked.column] ?? (() => 0);
  }

  add(row: T): void {
    const { offset, limit, text } = this.#asked;
    if (!fits(this.#listing, row, this.#asked) || !hasText(this.#texts, row, text)) return;
    this.#matching += 1;
    const key = this.#of(row);
    if (this.#last !== undefined && this.#compare(key, this.#last) >= 0) return;
    this.#first.push({ row, key });
    if (this.#first.length >= 4 * (offset + limit)) this.#order();
  }

  page(): JsonObject {
    const { offset, limit } = this.#asked;
    this.#order();
    const items = this.#first.slice(offset).map(({ row }) => this.#listing.view(row));
    const { kind } = this.#listing;
    return { kind, total: this.all.length, matching: this.#matching, offset, limit, items };
  }

  #order(): void {
    const { offset, limit } = this.#asked;
    this.#first = this.#first.toSorted((a, b) => this.#compare(a.key, b.key)).slice(0, offset + limit);
    this.#last = this.#first[offset + limit - 1]?.key;
  }

  #compare(one: Keyed<T>["key"], other: Keyed<T>["key"]): number {
    return this.#asked.isDescending ? compare(other, one) : compare(one, other);
  }
}

function askedIn<T>({ columns, sort }: Listing<T>, query: string): ListQuery | string {
  const params = new URLSearchParams(query);
  const limit = wholeIn(params, "limit", adminLimits.apiPage);
  const offset = wholeIn(params, "offset", 0);
  if (limit === undefined || limit < 1 || limit > adminLimits.apiPageMost)
    return `"limit" must be a whole number from 1 to ${adminLimits.apiPageMost}`;
  if (offset === undefined || offset > adminLimits.apiOffset)
    return `"offset" must be a whole number up to ${adminLimits.apiOffset}`;
  const order = params.get("sort") ?? sort;
  const column = order.replace(/^-/, "");
  if (!Object.hasOwn(columns, column)) return `"sort" must be one of ${Object.keys(columns).join(", ")}`;
  const known = new Set(["limit", "offset", "sort", "q"]);
  const filters = [...params].filter(([name]) => !known.has(name));
  const strange = filters.find(([name]) => !Object.hasOwn(columns, name));
  if (strange !== undefined)
    return `Cannot filter by "${strange[0].slice(0, 64)}": columns are ${Object.keys(columns).join(", ")}`;
  const text = (params.get("q") ?? "").toLowerCase();
  return { limit, offset, column, isDescending: order.startsWith("-"), text, filters };
}

function wholeIn(params: URLSearchParams, name: string, usual: number): number | undefined {
  const text = params.get(name);
  if (text === null) return usual;
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** A filter compares a column's whole value. */
function fits<T>({ columns }: Listing<T>, row: T, { filters }: ListQuery): boolean {
  for (const [name, value] of filters) if (String(columns[name]?.(row)) !== value) return false;
  return true;
}

type Column<T> = Listing<T>["columns"][string];

/** Returns the columns of texts, judged by the first row: numbers, half of a watch's columns, are not searched. */
function textColumns<T>({ columns }: Listing<T>, first: T | undefined): readonly Column<T>[] {
  if (first === undefined) return [];
  return Object.values(columns).filter((of) => typeof of(first) === "string");
}

/** True if any column contains `text`, which is in lower case. */
function hasText<T>(texts: readonly Column<T>[], row: T, text: string): boolean {
  return text === "" || texts.some((of) => String(of(row)).toLowerCase().includes(text));
}

function compare(one: string | number, other: string | number): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  const [a, b] = [String(one), String(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}
