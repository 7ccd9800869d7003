import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The stylesheet of all pages. */
export const STYLE = 'style.css'

/** Files of `browser/css/` that are served as one, in this order. */
const STYLES = [
  ...['tokens', 'base', 'layout', 'parts', 'tables', 'charts'],
  ...['verify', 'lists', 'webhooks'],
]

/**
 * Returns the stylesheet of all pages from its parts in `css/` of a folder. The build writes it to a
 * file; the dashboard calls this when it runs from its sources.
 */
export const joinStyles = (folder: string): Buffer<ArrayBuffer> =>
  Buffer.concat(STYLES.map(name => readFileSync(join(folder, 'css', `${name}.css`))))
