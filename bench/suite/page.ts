import { join } from 'node:path'

/** The page about performance, whose sections the suite writes. */
export const PAGE = join(import.meta.dirname, '../../docs/contributing/performance.md')

/** Where a section begins, such as `<!-- bench: lists -->`. */
const start = (section: string) => `<!-- bench: ${section} -->`
const END = '<!-- end -->'

/**
 * Replaces the measured section of a page. Throws if the page does not have it, or if its end is
 * missing.
 */
export function replaceSection(page: string, section: string, lines: readonly string[]): string {
  const from = page.indexOf(start(section))
  const to = page.indexOf(END, from)
  if (from === -1 || to === -1)
    throw new Error(`The page has no section from ${start(section)} to ${END}.`)
  const until = from + start(section).length
  return `${page.slice(0, until)}\n\n${lines.join('\n')}\n\n${page.slice(to)}`
}

/** Returns the names of the measured sections of a page, in their order. */
export const sectionsOf = (page: string): string[] =>
  [...page.matchAll(/<!-- bench: ([a-z-]+) -->/g)].map(([, name = '']) => name)
