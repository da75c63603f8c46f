/** Serves lists of the JSON API in pages. Works in time slices, because 50,000 rows would delay other requests. */
import type { Clock } from "../../../base/clock.ts";
import { inSlices } from "../../../base/slices.ts";
import { adminLimits } from "./limits.ts";

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** A list of the API: where its rows come from, and how they are shown, filtered and sorted. */
export type Listing<T> = {
  /** Value of "kind" in the response, such as "WatchList". */
  readonly kind: string;
  /** Returns a promise if computing the rows takes several time slices. */
  readonly rows: () => readonly T[] | Promise<readonly T[]>;
  /** True if an object in `rows` is a row of this list; default: every object is one. */
  readonly has?: (row: T) => boolean;
  /** Columns by which a query can filter and sort. The functions return -1 for a missing number. */
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
  /** Returns the list's rows from the first one up to the last one of the requested page, or an error as a string. */
  readonly readFirst: (query: string) => Promise<FirstRows | string>;
};

/**
 * The rows of a list, in order, from the first one up to the last one of the requested page, so that the rows of
 * several processes can be merged. `total`, `matching` and `groups` describe the whole list.
 */
export type FirstRows = {
  readonly total: number;
  readonly matching: number;
  readonly items: readonly Json[];
  /** For each row of `items`, in the same order: the value by which the list is sorted. */
  readonly keys: readonly (string | number)[];
  readonly groups: readonly Group[];
};

/** A value of a column, and the number of matching rows that have it. */
type Group = { readonly value: string; readonly rows: number };

type ListQuery = {
  /** The column whose values are counted; "": none. */
  readonly group: string;
  readonly limit: number;
  readonly offset: number;
  readonly column: string;
  readonly isDescending: boolean;
  readonly text: string;
  /** Columns and their allowed values. A row matches if it has an allowed value in each of these columns. */
  readonly filters: readonly (readonly [column: string, values: readonly string[]])[];
};

export function pagesOf<T>(listing: Listing<T>, clock: Clock): Page {
  const { kind, sort, columns } = listing;
  return {
    kind,
    sort,
    columns: Object.keys(columns),
    read: (query) => pageOf(listing, query, clock),
    readFirst: (query) => firstOf(listing, query, clock),
  };
}

/** Returns one page, or an error as a string. Works in time slices, because 50,000 rows would delay other requests. */
export function pageOf<T>(listing: Listing<T>, query: string, clock: Clock): Promise<JsonObject | string> {
  return builtOf(listing, query, { clock, of: (builder) => builder.page() });
}

function firstOf<T>(listing: Listing<T>, query: string, clock: Clock): Promise<FirstRows | string> {
  return builtOf(listing, query, { clock, of: (builder) => builder.first() });
}

type Built<T, R> = { readonly clock: Clock; readonly of: (builder: PageBuilder<T>) => R };

function builtOf<T, R>(listing: Listing<T>, query: string, how: Built<T, R>): Promise<R | string> {
  const parsed = queryIn(listing, query);
  if (typeof parsed === "string") return Promise.resolve(parsed);
  const rows = listing.rows();
  if (!(rows instanceof Promise)) return built(new PageBuilder(listing, rows, parsed), how);
  return rows.then((all) => built(new PageBuilder(listing, all, parsed), how));
}

function built<T, R>(builder: PageBuilder<T>, { clock, of }: Built<T, R>): Promise<R> {
  return new Promise((resolve) => {
    inSlices(
      clock,
      builder.all,
      (row) => builder.add(row),
      () => resolve(of(builder)),
    );
  });
}

/**
 * Returns a list whose rows all come from other processes. `page`: this process's own page of that list. It has no
 * rows, and is used only to validate queries.
 */
export function mergedPage(page: Page, others: (query: string) => Promise<readonly FirstRows[]>): Page {
  const readFirst = async (query: string): Promise<FirstRows | string> => {
    const own = await page.readFirst(query);
    if (typeof own === "string") return own;
    const { offset, limit, isDescending } = partOf(page, query);
    return merged(await others(query), offset + limit, isDescending);
  };
  const read = async (query: string): Promise<JsonObject | string> => {
    const first = await readFirst(query);
    if (typeof first === "string") return first;
    const { offset, limit } = partOf(page, query);
    const { total, matching, items, groups } = first;
    const { kind } = page;
    return { kind, total, matching, offset, limit, items: items.slice(offset, offset + limit), groups };
  };
  return { ...page, read, readFirst };
}

/** Returns which rows of a list a valid query selects, and in which direction they are sorted. */
function partOf({ sort }: Page, query: string): Pick<ListQuery, "offset" | "limit" | "isDescending"> {
  const params = new URLSearchParams(query);
  return {
    offset: wholeIn(params, "offset", 0) ?? 0,
    limit: wholeIn(params, "limit", adminLimits.apiPage) ?? 0,
    isDescending: (params.get("sort") ?? sort).startsWith("-"),
  };
}

function merged(all: readonly FirstRows[], most: number, isDescending: boolean): FirstRows {
  const rows = all.flatMap(({ items, keys }) => items.map((row, at) => ({ row, key: keys[at] ?? "" })));
  const first = rows
    .toSorted((a, b) => (isDescending ? compare(b.key, a.key) : compare(a.key, b.key)))
    .slice(0, most);
  const groups = new Map<string, number>();
  for (const { value, rows: count } of all.flatMap((one) => one.groups))
    groups.set(value, (groups.get(value) ?? 0) + count);
  return {
    total: all.reduce((sum, { total }) => sum + total, 0),
    matching: all.reduce((sum, { matching }) => sum + matching, 0),
    items: first.map(({ row }) => row),
    keys: first.map(({ key }) => key),
    groups: largest(groups),
  };
}

function largest(groups: ReadonlyMap<string, number>): readonly Group[] {
  return Array.from(groups, ([value, rows]) => ({ value, rows }))
    .toSorted((a, b) => b.rows - a.rows || compare(a.value, b.value))
    .slice(0, adminLimits.apiPageMost);
}

type RowWithKey<T> = { readonly row: T; readonly key: string | number };

/** Counts the rows that match a query, and keeps only those that can be on the requested page. */
class PageBuilder<T> {
  readonly all: readonly T[];
  readonly #listing: Listing<T>;
  readonly #query: ListQuery;
  readonly #textColumns: readonly Column<T>[];
  readonly #has: (row: T) => boolean;
  readonly #sortColumn: Column<T>;
  readonly #groupColumn: Column<T> | undefined;
  readonly #groups = new Map<string, number>();
  #total = 0;
  #matching = 0;
  /** Rows that may be on the page: first those that the latest sort kept, in order, then those added after the sort. */
  #first: RowWithKey<T>[] = [];
  /**
   * Key of the page's last row at the latest sort; undefined: the page was not full. A row that sorts after it cannot
   * be on the page.
   */
  #last: RowWithKey<T>["key"] | undefined;

  constructor(listing: Listing<T>, rows: readonly T[], query: ListQuery) {
    this.#listing = listing;
    this.#query = query;
    this.all = rows;
    this.#textColumns = textColumns(listing, this.all[0]);
    this.#has = listing.has ?? (() => true);
    this.#groupColumn = listing.columns[query.group];
    this.#sortColumn = listing.columns[query.column] ?? (() => 0);
  }

  add(row: T): void {
    if (!this.#has(row)) return;
    this.#total += 1;
    const { offset, limit, text } = this.#query;
    if (!fits(this.#listing, row, this.#query) || !hasText(this.#textColumns, row, text)) return;
    this.#matching += 1;
    if (this.#groupColumn !== undefined) this.#count(String(this.#groupColumn(row)));
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
    const groups = largest(this.#groups);
    return { kind, total: this.#total, matching: this.#matching, offset, limit, items, groups };
  }

  /** Counts a row in its group, or in the group "" if there are too many groups. */
  #count(value: string): void {
    const isKnown = this.#groups.has(value) || this.#groups.size < adminLimits.apiGroups;
    const group = isKnown ? value : "";
    this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1);
  }

  first(): FirstRows {
    this.#order();
    const items = this.#first.map(({ row }) => this.#listing.view(row));
    const keys = this.#first.map(({ key }) => key);
    return { total: this.#total, matching: this.#matching, items, keys, groups: largest(this.#groups) };
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
  const group = params.get("group") ?? "";
  const known = new Set(["limit", "offset", "sort", "q", "group"]);
  const filters = [...new Set(params.keys())]
    .filter((name) => !known.has(name))
    .map((name) => [name, params.getAll(name)] as const);
  const problem = unknownColumn(columns, { column, group, filters });
  if (problem !== undefined) return `${problem}: columns are ${Object.keys(columns).join(", ")}`;
  const text = (params.get("q") ?? "").toLowerCase();
  return { group, limit, offset, column, isDescending: order.startsWith("-"), text, filters };
}

/** Returns an error if the query sorts, groups or filters by a column that the list does not have. */
function unknownColumn(
  columns: object,
  { column, group, filters }: Pick<ListQuery, "column" | "group" | "filters">,
): string | undefined {
  const isUnknown = (name: string): boolean => !Object.hasOwn(columns, name);
  const [strange] = filters.find(([name]) => isUnknown(name)) ?? [];
  if (isUnknown(column)) return `Cannot sort by "${column.slice(0, 64)}"`;
  if (group !== "" && isUnknown(group)) return `Cannot group by "${group.slice(0, 64)}"`;
  return strange === undefined ? undefined : `Cannot filter by "${strange.slice(0, 64)}"`;
}

function wholeIn(params: URLSearchParams, name: string, usual: number): number | undefined {
  const text = params.get(name);
  if (text === null) return usual;
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function fits<T>({ columns }: Listing<T>, row: T, { filters }: ListQuery): boolean {
  for (const [name, values] of filters) if (!values.includes(String(columns[name]?.(row)))) return false;
  return true;
}

type Column<T> = Listing<T>["columns"][string];

/**
 * Returns the columns that the query parameter `q` searches: those whose value in the first row (`first`) is a string.
 */
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
