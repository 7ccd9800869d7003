import { createRequire } from 'node:module'
import type { CliContext, CliOutput } from './context.ts'

/**
 * Returns the width of an output in characters: `COLUMNS` of the environment, else the width of the
 * terminal; null if the output is not a terminal.
 */
export function widthOf({ env }: Pick<CliContext, 'env'>, output: CliOutput): number | null {
  const fromEnvironment = Number(env.COLUMNS)
  if (Number.isInteger(fromEnvironment) && fromEnvironment > 0) return fromEnvironment
  // A terminal of unknown width reports 0 columns.
  return output.isTTY === true && (output.columns ?? 0) > 0 ? (output.columns as number) : null
}

/** Width of the terminal in characters; null if the output is not a terminal. */
export const terminalWidth = (context: Pick<CliContext, 'env'>, output: CliOutput) =>
  output.isTTY === true && (output.columns ?? 0) > 0 ? widthOf(context, output) : null

/**
 * Texts of characters that take one column each: ASCII, Latin-1 without the soft hyphen, dashes,
 * quotation marks, the ellipsis and the marks of results.
 */
const NARROW = /^[ -~\u00a0-\u00ac\u00ae-\u00ff\u2013\u2014\u2018-\u201d\u2026\u2714\u2718]*$/
/** Colors. */
const STYLES = /\u001b\[[\d;]*m/g

let loaded: ((text: string) => number) | null = null

/**
 * Returns the number of columns that a text takes in a terminal. Loads string-width for the first
 * text that needs it: its regular expressions take 40 ms to compile.
 */
export function textWidth(text: string): number {
  const plain = text.replace(STYLES, '')
  if (NARROW.test(plain)) return plain.length
  loaded ??= createRequire(import.meta.url)('string-width').default as (text: string) => number
  return loaded(text)
}

/** A command in quotes, or a word. */
const COPYABLE = /"ev [^"]*"[^ ]*|[^ ]+/g

/**
 * Wraps lines that are too long and keeps their indentation. Commands in quotes and long words, such
 * as paths, are not broken, so that they can be copied. Without a width the text is returned as it
 * is.
 */
export function wrapLines(text: string, width: number | null): string {
  if (width === null) return text
  const wrapped = (line: string) => {
    if (textWidth(line) <= width) return line
    const indent = /^ */.exec(line)?.[0] ?? ''
    return fillLines(line.match(COPYABLE) ?? [], width - indent.length)
      .map(one => indent + one)
      .join('\n')
  }
  return text.split('\n').map(wrapped).join('\n')
}

/** Pads a text with spaces, counting wide characters as two columns. */
export const padded = (text: string, width: number, align: 'left' | 'right' = 'left'): string => {
  const space = ' '.repeat(Math.max(0, width - textWidth(text)))
  return align === 'right' ? space + text : text + space
}

/**
 * Wraps a text at spaces into lines of at most `width`; a longer word, such as a path, is cut behind
 * its separators.
 */
export const wrapText = (text: string, width: number): string[] =>
  fillLines(
    text.split(' ').flatMap(word => cutWord(word, width)),
    width,
  )

/** Fills lines with words; a longer word gets a line of its own. */
function fillLines(words: readonly string[], width: number, space = ' '): string[] {
  const lines: string[] = []
  for (const word of words) {
    const line = lines.at(-1)
    if (line === undefined || textWidth(line + space + word) > width) lines.push(word)
    else lines[lines.length - 1] = line + space + word
  }
  return lines
}

/** Where a long word, such as a path, may continue on the next line. */
const BREAK = /(?<=[/.:?&=_@,-])/

/** Returns the width of the longest part of a text that `wrapText` does not cut if it fits. */
export const longestPart = (text: string): number =>
  Math.max(...text.split(' ').flatMap(word => word.split(BREAK).map(part => textWidth(part))))

function cutWord(word: string, width: number): string[] {
  if (textWidth(word) <= width) return [word]
  const pieces = word.split(BREAK)
  return fillLines(
    pieces.flatMap(piece => (textWidth(piece) <= width ? [piece] : [...piece])),
    width,
    '',
  )
}

/**
 * Fits the text below the options of a help page: joins and wraps paragraphs, and breaks indented
 * commands with a backslash, so that they can still be pasted.
 */
export function wrapHelp(text: string, width: number): string {
  const blocks = text.split('\n\n').map(block => wrapBlock(block.split('\n'), width))
  return blocks.join('\n\n')
}

function wrapBlock(lines: readonly string[], width: number): string {
  const wrapped: string[] = []
  let paragraph: string[] = []
  const endParagraph = () => {
    if (paragraph.length > 0) wrapped.push(...wrapText(paragraph.join(' '), width))
    paragraph = []
  }
  for (const line of lines) {
    if (line !== '' && !line.startsWith(' ') && !line.endsWith(':')) {
      paragraph.push(line)
      continue
    }
    endParagraph()
    wrapped.push(...(line.startsWith('  ') ? wrapCommand(line.slice(2), width) : [line]))
  }
  endParagraph()
  return wrapped.join('\n')
}

const CONTINUED = ' \\'

/** An option with its value, a redirection, a quoted argument, or another word. */
const PART = /(?:--?[A-Za-z][a-z-]* (?!-)|< )?(?:[^\s"']|"[^"]*"|'[^']*')+/g

/** A comment at the end of a long line goes above the command. */
function wrapCommand(line: string, width: number): string[] {
  if (textWidth(line) + 2 <= width) return [`  ${line}`]
  const [command = '', comment] = line.split(/(?<! ) +(?=# )/)
  if (comment !== undefined) return [`  ${comment}`, ...wrapCommand(command, width)]
  const parts = command.match(PART) ?? []
  const [first = '', ...rest] = fillLines(parts, width - 4 - CONTINUED.length)
  const lines = [`  ${first}`, ...rest.map(one => `    ${one}`)]
  return lines.map((one, n) => (n < lines.length - 1 ? `${one}${CONTINUED}` : one))
}
