/** Returns a page's public URL: the image and the executable contain no `docs` folder. `path`: relative to `docs`. */
export function docsPage(path: string): string {
  return `https://watchkeeper.dev/docs/${path}`;
}
