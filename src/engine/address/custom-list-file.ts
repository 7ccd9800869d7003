import { readFileSync, statSync } from 'node:fs'
import { EvError, errorMessage } from '../../platform/error.ts'
import { formatMebibytes } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type CustomListName, ENTRY_FORMAT_HINT, readEntry } from './custom-list-entry.ts'

/**
 * Three times the size of the built-in disposable list. This many entries take about 50 MB of
 * memory.
 */
export const ENTRIES_MAX = 500_000
/**
 * Enough for that number of entries of usual length, each with a comment. A file is read
 * synchronously, so its size limits how long the event loop is blocked.
 */
export const SIZE_MAX = 32 * 1024 * 1024
/** Length of the excerpt of an invalid line in an error. */
const SHOWN_MAX = 80

/**
 * Yields the keys of a list file: UTF-8, one entry per line; empty lines and comments are skipped.
 * Throws EvError('bad_config') with the path and the first invalid line.
 */
export function* keysInFile(list: CustomListName, path: string): Generator<string> {
  let count = 0
  // The decoder drops a byte order mark and replaces invalid UTF-8 by U+FFFD, which no entry
  // allows.
  for (const { number, text } of entriesIn(new TextDecoder('utf-8').decode(bytesOf(path)))) {
    const entry = readEntry(list, text)
    if ('why' in entry) throw badLine(list, path, number, text, entry.why)
    if (++count > ENTRIES_MAX) throw tooLong(path, `${ENTRIES_MAX} entries`)
    yield entry.key
  }
}

/**
 * A comment starts at the start of a line or after a space; an address may have a # (RFC 5322
 * §3.2.3).
 */
const COMMENT = /(?:^|\s)#.*/

/** Yields the lines that are neither empty nor comments, with their line numbers. */
export function* entriesIn(list: string): Generator<{ number: number; text: string }> {
  let number = 0
  for (const line of linesIn(list)) {
    number++
    const text = line.replace(COMMENT, '').trim()
    if (text !== '') yield { number, text }
  }
}

/** Yields one line at a time: an array of lines would take several times the size of the file. */
function* linesIn(text: string): Generator<string> {
  let start = 0
  for (const { index, 0: end } of text.matchAll(/\r\n?|\n/g)) {
    yield text.slice(start, index)
    start = index + end.length
  }
  yield text.slice(start)
}

function bytesOf(path: string): Buffer {
  try {
    const stat = statSync(path)
    // A pipe cannot be read a second time on reload.
    if (!stat.isFile()) throw new Error('it is not a regular file')
    if (stat.size > SIZE_MAX) throw tooLong(path, formatMebibytes(SIZE_MAX))
    return readFileSync(path)
  } catch (cause) {
    if (cause instanceof EvError) throw cause
    const sentence = `The list ${path} cannot be read: ${errorMessage(cause)}. Correct the path or remove the setting.`
    throw new EvError('bad_config', sentence, { cause })
  }
}

const badLine = (list: CustomListName, path: string, number: number, text: string, why: string) =>
  new EvError(
    'bad_config',
    `The list ${path} has "${sanitizeText(text, SHOWN_MAX)}" on line ${number}. ${why} ` +
      `Each line takes ${ENTRY_FORMAT_HINT[list]}; comments start with #.`,
  )

const tooLong = (path: string, max: string) =>
  new EvError('bad_config', `The list ${path} is longer than the maximum of ${max}. Shorten it.`)
