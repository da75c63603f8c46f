/** Returns a page's public URL, because the executable has no docs. `path` is relative to `docs`. */
export function docsPage(path: string): string {
  return `https://watchkeeper.dev/docs/${path}`;
}
