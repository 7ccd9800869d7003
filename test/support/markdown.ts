import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The root of the project. */
export const ROOT = join(import.meta.dirname, '../..')

/** Reads a file of the project by its path from the root. */
export const readDoc = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** A fenced code block; `language` is '' if it names none. */
export type CodeBlock = { readonly language: string; readonly text: string }

/** Returns the code blocks of a file, in their order. */
export const codeBlocks = (path: string): CodeBlock[] => codeBlocksOf(readDoc(path))

/** Returns the code blocks of a Markdown text, in their order. */
export const codeBlocksOf = (text: string): CodeBlock[] =>
  [...text.matchAll(FENCE)].map(([, language = '', text = '']) => ({
    language,
    text: text.trim(),
  }))

/** Returns the text below a heading of the second level, up to the next one; throws without it. */
export function sectionOf(path: string, heading: string): string {
  const [, ...sections] = readDoc(path).split(/^## /m)
  const section = sections.find(text => text.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`${path} has no section "${heading}"`)
  return section
}

/** Returns a page with other rows in the table that has this header; throws without the table. */
export function replaceTable(page: string, header: string, rows: readonly string[][]): string {
  const lines = page.split('\n')
  const start = lines.indexOf(header) + 2
  if (start === 1) throw new Error(`there is no table "${header}"`)
  const end = lines.findIndex((line, at) => at >= start && !line.startsWith('|'))
  const replaced = rows.map(cells => `| ${cells.join(' | ')} |`)
  return [...lines.slice(0, start), ...replaced, ...lines.slice(end)].join('\n')
}

/** Returns a Markdown text without its code blocks. */
export const withoutCode = (text: string): string => text.replaceAll(FENCE, '')

const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm

/** Expected output of a program, from comments behind a `console.log` or on the lines below it. */
export const shownOutput = (program: string): string[] =>
  [...program.matchAll(/^(?:.*console\.log\(.*\))? ?\/\/ (.*)$/gm)].map(([, text = '']) => text)

/** Returns the anchors of the headings of a page, as GitHub derives them. */
export const anchors = (path: string): Set<string> =>
  new Set(
    [...withoutCode(readDoc(path)).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
