import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { legacyEncoding } from './legacy.ts'

/**
 * The character encoding of a list (a WHATWG label): the one that is given, else told from its first bytes. Throws
 * `bad_input` for what is no text (a workbook, an archive, UTF-32), and for an encoding that nobody knows.
 */
export function findEncoding(
  head: Uint8Array,
  complete: boolean,
  given?: string,
): { encoding: string; bom: boolean } {
  refuseForeignFormats(head)
  if (given !== undefined) return { encoding: encodingNamed(given), bom: hasMark(head) }
  if (startsWith(head, [0xef, 0xbb, 0xbf])) return { encoding: 'utf-8', bom: true }
  if (startsWith(head, [0xff, 0xfe])) return { encoding: 'utf-16le', bom: true }
  if (startsWith(head, [0xfe, 0xff])) return { encoding: 'utf-16be', bom: true }
  return { encoding: utf16WithoutMark(head) ?? byteEncoding(head, complete), bom: false }
}

function encodingNamed(label: string): string {
  try {
    return new TextDecoder(label).encoding
  } catch (cause) {
    throw new EvError(
      'bad_input',
      `"${sanitizeText(label, 40)}" is not a known encoding. Examples are utf-8, windows-1252, windows-1251, macintosh and shift_jis.`,
      { cause },
    )
  }
}

const hasMark = (head: Uint8Array) =>
  startsWith(head, [0xef, 0xbb, 0xbf]) ||
  startsWith(head, [0xff, 0xfe]) ||
  startsWith(head, [0xfe, 0xff])

/** Decodes a list piece by piece; the pieces may cut characters anywhere. */
export class ListDecoder {
  readonly #decoder: TextDecoder | null
  #rest: Uint8Array = new Uint8Array()
  #started = false

  constructor(encoding: string) {
    this.#decoder = encoding === 'utf-8' ? null : new TextDecoder(encoding, { ignoreBOM: true })
  }

  push(bytes: Uint8Array, last = false): string {
    const text = this.#decoder
      ? this.#decoder.decode(bytes, { stream: !last })
      : this.#wholeLines(bytes, last)
    if (this.#started || text === '') return text
    this.#started = true
    // A file saved twice may carry two marks.
    return text.replace(/^\uFEFF+/, '')
  }

  /** UTF-8 is decoded line by line, so that one line in another encoding spoils neither itself nor its neighbours. */
  #wholeLines(bytes: Uint8Array, last: boolean): string {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const end = last || all.length > LINE_BYTES_MAX ? all.length : lastLineBreak(all) + 1
    // A copy: the caller may use its buffer again.
    this.#rest = all.slice(end)
    return decodeLines(all.subarray(0, end))
  }
}

/** A line beyond this is decoded in pieces: the record reader refuses it anyway. */
const LINE_BYTES_MAX = 4 * 1024 * 1024
const LF = 0x0a
const CR = 0x0d
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })
/** What a stray line of a UTF-8 list most likely is: something pasted from an old Windows program. */
const STRAY = new TextDecoder('windows-1252')

function decodeLines(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return UTF8.decode(bytes)
  return splitLines(bytes)
    .map(line => (isUtf8(line) ? UTF8 : STRAY).decode(line))
    .join('')
}

/** The lines with their breaks; LF and CR mean nothing else in UTF-8 and in the encodings of one byte. */
function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = []
  let start = 0
  for (let i = 0; i < bytes.length; i += 1) {
    if (bytes[i] !== LF && bytes[i] !== CR) continue
    lines.push(bytes.subarray(start, i + 1))
    start = i + 1
  }
  if (start < bytes.length) lines.push(bytes.subarray(start))
  return lines
}

const lastLineBreak = (bytes: Uint8Array) => Math.max(bytes.lastIndexOf(LF), bytes.lastIndexOf(CR))

const startsWith = (bytes: Uint8Array, mark: readonly number[]) =>
  mark.every((byte, index) => bytes[index] === byte)

const FOREIGN_FORMATS: readonly [mark: readonly number[], name: string][] = [
  [[0x50, 0x4b, 0x03, 0x04], 'an Excel workbook or a ZIP archive'],
  [[0xd0, 0xcf, 0x11, 0xe0], 'an old Excel workbook'],
  [[0x1f, 0x8b], 'a gzip archive'],
  [[0x25, 0x50, 0x44, 0x46, 0x2d], 'a PDF document'],
  [[0xff, 0xfe, 0x00, 0x00], 'text in UTF-32'],
  [[0x00, 0x00, 0xfe, 0xff], 'text in UTF-32'],
]

function refuseForeignFormats(head: Uint8Array): void {
  const found = FOREIGN_FORMATS.find(([mark]) => startsWith(head, mark))
  if (!found) return
  throw new EvError(
    'bad_input',
    `The list is ${found[1]}, but ev reads plain text: CSV, TSV or one address a line. Save it as "CSV UTF-8" and give that file.`,
  )
}

/** In UTF-16 each ASCII character of a list (delimiters, addresses) leaves a NUL on the same side. */
function utf16WithoutMark(head: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  const pairs = Math.min(head.length, 4096) >> 1
  let even = 0
  let odd = 0
  for (let i = 0; i < pairs; i += 1) {
    if (head[2 * i] === 0) even += 1
    if (head[2 * i + 1] === 0) odd += 1
  }
  if (odd > pairs / 8 && even < odd / 8) return 'utf-16le'
  if (even > pairs / 8 && odd < even / 8) return 'utf-16be'
  return null
}

/** UTF-8, unless most lines beyond ASCII say otherwise. */
function byteEncoding(head: Uint8Array, complete: boolean): string {
  // ISO-2022-JP is all ASCII bytes, told by its escapes (RFC 1468).
  if (Buffer.from(head.subarray(0, 4096)).includes('\x1b$B')) return 'iso-2022-jp'
  const whole = complete ? head : head.subarray(0, lastLineBreak(head) + 1)
  if (isUtf8(whole)) return 'utf-8'
  const lines = splitLines(whole).filter(line => line.some(byte => byte >= 0x80))
  const foreign = lines.filter(line => !isUtf8(line))
  return foreign.length * 2 <= lines.length ? 'utf-8' : legacyEncoding(foreign)
}
