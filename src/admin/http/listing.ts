/** Serves lists of the JSON API in pages. Filters and sorts in slices, so that 50,000 rows delay no other request. */
import type { Clock } from "../../base/clock.ts";
import { inSlices } from "../../base/slices.ts";
import { adminLimits } from "./limits.ts";

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** A list of the API: where its rows come from, and how they are shown, filtered and sorted. */
export type Listing<T> = {
  /** Value of "kind" in the response, such as "WatchList". */
  readonly kind: string;
  readonly rows: () => readonly T[];
  /** Columns by which a query can filter and sort. They return -1 for a missing number. */
  readonly columns: Readonly<Record<string, (row: T) => string | number>>;
  /** Column by which rows are sorted by default; with "-" before it, in descending order. */
  readonly sort: string;
  readonly view: (row: T) => Json;
};

export type JsonObject = { readonly [key: string]: Json | undefined };

export type Page = Pick<Listing<never>, "kind" | "sort"> & {
  readonly columns: readonly string[];
  /** Returns one page for a query, or an error as a string. */
  readonly read: (query: string) => Promise<JsonObject | string>;
};

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

/** Returns one page, or an error as a string. Works in slices, so that 50,000 rows delay no other request. */
export function pageOf<T>(listing: Listing<T>, query: string, clock: Clock): Promise<JsonObject | string> {
  const parsed = queryIn(listing, query);
  if (typeof parsed === "string") return Promise.resolve(parsed);
  const builder = new PageBuilder(listing, parsed);
  return new Promise((resolve) => {
    inSlices(
      clock,
      builder.all,
      (row) => builder.add(row),
      () => resolve(builder.page()),
    );
  });
}

type RowWithKey<T> = { readonly row: T; readonly key: string | number };

/** Collects the rows that match a query, and keeps only those that can be on its page. */
class PageBuilder<T> {
  readonly all: readonly T[];
  readonly #listing: Listing<T>;
  readonly #query: ListQuery;
  readonly #textColumns: readonly Column<T>[];
  readonly #sortColumn: Column<T>;
  #matching = 0;
  /** Rows that may be on the page: first those that were kept at the latest sort, in order, then those added since. */
  #first: RowWithKey<T>[] = [];
  /** Key of the page's last row at the latest sort; undefined: the page was not full. */
  #last: RowWithKey<T>["key"] | undefined;

  constructor(listing: Listing<T>, query: ListQuery) {
    this.#listing = listing;
    this.#query = query;
    this.all = listing.rows();
    this.#textColumns = textColumns(listing, this.all[0]);
    this.#sortColumn = listing.columns[query.column] ?? (() => 0);
  }

  add(row: T): void {
    const { offset, limit, text } = this.#query;
    if (!fits(this.#listing, row, this.#query) || !hasText(this.#textColumns, row, text)) return;
    this.#matching += 1;
    const key = this.#sortColumn(row);
    if (this.#last !== undefined && this.#compare(key, this.#last) >= 0) return;
    this.#first.push({ row, key });
    if (this.#first.length >= 4 * (offset + limit)) this.#order();
  }

  page(): JsonObject {
    const { offset, limit } = this.#query;
    this.#order();
    const items = this.#first.slice(offset).map(({ row }) => this.#listing.view(row));
    const { kind } = this.#listing;
    return { kind, total: this.all.length, matching: this.#matching, offset, limit, items };
  }

  #order(): void {
    const { offset, limit } = this.#query;
    this.#first = this.#first.toSorted((a, b) => this.#compare(a.key, b.key)).slice(0, offset + limit);
    this.#last = this.#first[offset + limit - 1]?.key;
  }

  #compare(one: RowWithKey<T>["key"], other: RowWithKey<T>["key"]): number {
    return this.#query.isDescending ? compare(other, one) : compare(one, other);
  }
}

function queryIn<T>({ columns, sort }: Listing<T>, query: string): ListQuery | string {
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

function fits<T>({ columns }: Listing<T>, row: T, { filters }: ListQuery): boolean {
  for (const [name, value] of filters) if (String(columns[name]?.(row)) !== value) return false;
  return true;
}

type Column<T> = Listing<T>["columns"][string];

/** Returns the columns with text, which `q` searches, as the first row shows. */
function textColumns<T>({ columns }: Listing<T>, first: T | undefined): readonly Column<T>[] {
  if (first === undefined) return [];
  return Object.values(columns).filter((of) => typeof of(first) === "string");
}

/** True if any of the columns contains `text`, which must be in lower case. */
function hasText<T>(texts: readonly Column<T>[], row: T, text: string): boolean {
  return text === "" || texts.some((of) => String(of(row)).toLowerCase().includes(text));
}

function compare(one: string | number, other: string | number): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  const [a, b] = [String(one), String(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}
