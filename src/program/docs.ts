/** Returns a page's public URL, because the image and the executable have no docs. `path` is relative to `docs`. */
export function docsPage(path: string): string {
  return `https://watchkeeper.dev/docs/${path}`;
}
