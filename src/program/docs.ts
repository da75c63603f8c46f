/** Returns a page's public address: users of the image or executable have no folder docs. `path`: relative to docs. */
export function docsPage(path: string): string {
  return `https://watchkeeper.dev/docs/${path}`;
}
