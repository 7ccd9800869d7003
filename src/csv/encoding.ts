import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TextDecoder } from 'node:util'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/**
 * Returns the most plausible encoding (a WHATWG label) of lines that are not UTF-8. chardetng,
 * Firefox's detector, judges by pairs of letters. It does not know the two encodings of old Macs;
 * they are used if its choice does not yield plausible text.
 */
function legacyEncoding(lines: readonly Uint8Array[]): string {
  const sample = Buffer.concat(lines.slice(0, SAMPLE_LINES)).subarray(0, SAMPLE_BYTES)
  if (PUNCTUATION_OF_1252.test(new TextDecoder('windows-1252').decode(sample)))
    return 'windows-1252'
  const detected = detect(sample).toLowerCase()
  const guess = SUPERSETS[detected] ?? detected
  const mismatchesIn = (encoding: string) =>
    countMismatches(new TextDecoder(encoding).decode(sample))
  const count = mismatchesIn(guess) + (guess === 'windows-1252' ? countUnusualIn1252(sample) : 0)
  return MAC_ENCODINGS.find(encoding => mismatchesIn(encoding) * 2 < count) ?? guess
}

/** A few hundred words are enough to detect an encoding. */
const SAMPLE_LINES = 200
const SAMPLE_BYTES = 8 * 1024

/**
 * ASCII plus quotation marks, dashes and signs that precede no letter: there are no letters that a
 * detector could judge by.
 */
const PUNCTUATION_OF_1252 = /^(?:[\p{ASCII}\u00A0‘’‚“”„–—…•«»¿¡]|[£€©®°²³](?!\p{L}))*$/u

/** GB 18030 is a superset of GBK. */
const SUPERSETS: Readonly<Record<string, string>> = { gbk: 'gb18030' }
const MAC_ENCODINGS = ['macintosh', 'x-mac-cyrillic']
/**
 * Counts patterns that are rare in text but frequent in wrongly decoded text: control characters,
 * signs and capitals within words, adjacent letters of two scripts.
 */
const countMismatches = (text: string): number => text.match(MISDECODED)?.length ?? 0

const MISDECODED = new RegExp(
  [
    '[\\u0080-\\u009F\\uFFFD]',
    // A sign within a word: the Mac byte of é is Ž in other encodings, that of ß is §, that of Ö is
    // …
    '(?<=\\p{L})[[\\p{S}§¶]--[+]]',
    '(?<=\\p{L})[¡¿‚„…†‡‰‹›•«»“”](?=\\p{L})',
    '(?<!\\p{L})[†‡‰…§¶](?=\\p{L})',
    '(?<=\\p{Ll})[–—](?=\\p{Ll})',
    '(?<=\\p{Ll})[\\p{Lu}--[A-Z]]',
    '(?<=\\p{Lu})[ŠŽŒŸ](?=\\p{Ll})',
    '(?<=\\p{Script=Latin})\\p{Script=Cyrillic}',
    '(?<=\\p{Script=Cyrillic})\\p{Script=Latin}',
  ].join('|'),
  'gv',
)

/** Languages written in windows-1252 rarely use š and ž, whose bytes are ö and û on Macs. */
const countUnusualIn1252 = (sample: Uint8Array): number =>
  new TextDecoder('windows-1252').decode(sample).match(/[šž]/g)?.length ?? 0

/**
 * Exports of chardetng-wasm, which is instantiated here because Node imports wasm only with a flag.
 */
type Chardetng = {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly __wbindgen_malloc: (length: number) => number
  readonly __wbindgen_add_to_stack_pointer: (by: number) => number
  readonly detect: (returned: number, bytes: number, length: number) => void
}

/** WebAssembly types that the type definitions of Node leave out. */
type Wasm = {
  readonly Module: new (code: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}

let chardetng: Chardetng | undefined

function load(): Chardetng {
  const file = import.meta.resolve('chardetng-wasm/dist/chardetng_wasm_bg.wasm')
  const { WebAssembly } = globalThis as unknown as { WebAssembly: Wasm }
  const compiled = new WebAssembly.Module(readFileSync(fileURLToPath(file)))
  const __wbindgen_throw = () => {
    throw new Error('chardetng failed')
  }
  const imports = { './chardetng_wasm_bg.js': { __wbindgen_throw } }
  return new WebAssembly.Instance(compiled, imports).exports as Chardetng
}

function detect(bytes: Uint8Array): string {
  chardetng ??= load()
  const { memory, ...wasm } = chardetng
  // Two words on the wasm stack: address and length of the name.
  const returned = wasm.__wbindgen_add_to_stack_pointer(-16)
  const copy = wasm.__wbindgen_malloc(bytes.length)
  new Uint8Array(memory.buffer).set(bytes, copy)
  wasm.detect(returned, copy, bytes.length)
  const [at = 0, length = 0] = new Uint32Array(memory.buffer, returned, 2)
  const name = Buffer.from(memory.buffer, at, length).toString('latin1')
  wasm.__wbindgen_add_to_stack_pointer(16)
  return name
}

/**
 * Returns the character encoding of a list (a WHATWG label): the requested one, or else the one
 * detected from its first bytes. Throws EvError `bad_input` for files that are not plain
 * text and for unknown encodings.
 */
export function findEncoding(
  head: Uint8Array,
  complete: boolean,
  requested?: string,
): { encoding: string; bom: boolean } {
  rejectBinary(head)
  if (requested !== undefined)
    return { encoding: parseEncoding(requested), bom: hasByteOrderMark(head) }
  if (startsWith(head, [0xef, 0xbb, 0xbf])) return { encoding: 'utf-8', bom: true }
  if (startsWith(head, [0xff, 0xfe])) return { encoding: 'utf-16le', bom: true }
  if (startsWith(head, [0xfe, 0xff])) return { encoding: 'utf-16be', bom: true }
  return { encoding: detectUtf16(head) ?? detectByteEncoding(head, complete), bom: false }
}

function parseEncoding(label: string): string {
  try {
    return new TextDecoder(label).encoding
  } catch (cause) {
    throw new EvError(
      'bad_input',
      `"${sanitizeText(label, 40)}" is not a known encoding. Use a label such as utf-8, windows-1252, windows-1251, macintosh or shift_jis.`,
      { cause },
    )
  }
}

const hasByteOrderMark = (head: Uint8Array) =>
  startsWith(head, [0xef, 0xbb, 0xbf]) ||
  startsWith(head, [0xff, 0xfe]) ||
  startsWith(head, [0xfe, 0xff])

/** Decodes a list in chunks, which may split characters. */
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
      : this.#decodeCompleteLines(bytes, last)
    if (this.#started) return text
    // A file saved twice may start with two byte order marks, which may arrive one by one.
    const content = text.replace(/^\uFEFF+/, '')
    this.#started = content !== ''
    return content
  }

  /**
   * Decodes UTF-8 line by line, so that a line in another encoding is decoded with the fallback and
   * does not affect the others.
   */
  #decodeCompleteLines(bytes: Uint8Array, last: boolean): string {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const end = last || all.length > LINE_BYTES_MAX ? all.length : lastLineBreak(all) + 1
    // Copied, because the caller may reuse its buffer.
    this.#rest = all.slice(end)
    return decodeLines(all.subarray(0, end))
  }
}

/** Longer lines are decoded in parts; the record reader rejects them anyway. */
const LINE_BYTES_MAX = 4 * 1024 * 1024
const LF = 0x0a
const CR = 0x0d
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })
/** For invalid lines of a UTF-8 list: most likely text pasted from an old Windows program. */
const FALLBACK = new TextDecoder('windows-1252')

function decodeLines(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return UTF8.decode(bytes)
  return splitLines(bytes)
    .map(line => (isUtf8(line) ? UTF8 : FALLBACK).decode(line))
    .join('')
}

/**
 * Splits bytes into lines including their line breaks. LF and CR bytes have no other meaning in
 * UTF-8 and in single-byte encodings.
 */
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

const startsWith = (bytes: Uint8Array, prefix: readonly number[]) =>
  prefix.every((byte, index) => bytes[index] === byte)

/** The first bytes of files that are not plain text. */
const SIGNATURES: readonly [prefix: readonly number[], name: string][] = [
  [[0x50, 0x4b, 0x03, 0x04], 'an Excel workbook or a ZIP archive'],
  [[0xd0, 0xcf, 0x11, 0xe0], 'an old Excel workbook'],
  [[0x1f, 0x8b], 'a gzip archive'],
  [[0x42, 0x5a, 0x68], 'a bzip2 archive'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'an xz archive'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'a Zstandard archive'],
  [[0x37, 0x7a, 0xbc, 0xaf], 'a 7-Zip archive'],
  [[0x52, 0x61, 0x72, 0x21, 0x1a], 'a RAR archive'],
  [[0x25, 0x50, 0x44, 0x46, 0x2d], 'a PDF document'],
  [[0x89, 0x50, 0x4e, 0x47], 'a PNG image'],
  [[0xff, 0xd8, 0xff], 'a JPEG image'],
  [[0x7f, 0x45, 0x4c, 0x46], 'a program'],
  [[0xff, 0xfe, 0x00, 0x00], 'text in UTF-32'],
  [[0x00, 0x00, 0xfe, 0xff], 'text in UTF-32'],
]

/** Bytes that are checked for control characters. */
const CHECKED_BYTES = 4_096
/** A damaged export may have a few control characters. */
const CONTROLS_MIN = 4
/** Compressed data has one control character in nine bytes, text has hardly any. */
const CONTROL_SHARE_MAX = 0.05

/** Names the format of a file that is not plain text, such as `a PNG image`; null for text. */
export function describeBinary(head: Uint8Array): string | null {
  const found = SIGNATURES.find(([prefix]) => startsWith(head, prefix))
  if (found !== undefined) return found[1]
  // In UTF-16, each ASCII character has a NUL byte.
  if (hasByteOrderMark(head) || detectUtf16(head) !== null) return null
  const checked = head.subarray(0, CHECKED_BYTES)
  const controls = checked.reduce((count, byte) => count + (isControl(byte) ? 1 : 0), 0)
  const isBinary = controls >= CONTROLS_MIN && controls > CONTROL_SHARE_MAX * checked.length
  return isBinary ? 'a binary file' : null
}

/** Whitespace and ESC, which ISO-2022-JP uses, occur in text. */
const isControl = (byte: number) =>
  (byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b) || byte === 0x7f

function rejectBinary(head: Uint8Array): void {
  const format = describeBinary(head)
  if (format === null) return
  throw new EvError(
    'bad_input',
    `The file is ${format}, not a text file. Save it as "CSV UTF-8", and use that file.`,
  )
}

/**
 * Detects UTF-16 without a byte order mark: each ASCII character of a list (delimiters, addresses)
 * has a NUL byte on the same side.
 */
function detectUtf16(head: Uint8Array): 'utf-16le' | 'utf-16be' | null {
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

/** Returns UTF-8 unless most lines with bytes beyond ASCII are not valid UTF-8. */
function detectByteEncoding(head: Uint8Array, complete: boolean): string {
  // ISO-2022-JP uses ASCII bytes only and is recognized by its escape sequences (RFC 1468).
  if (Buffer.from(head.subarray(0, 4096)).includes('\x1b$B')) return 'iso-2022-jp'
  const completeLines = complete ? head : head.subarray(0, lastLineBreak(head) + 1)
  if (isUtf8(completeLines)) return 'utf-8'
  const lines = splitLines(completeLines).filter(line => line.some(byte => byte >= 0x80))
  const invalidLines = lines.filter(line => !isUtf8(line))
  return invalidLines.length * 2 <= lines.length ? 'utf-8' : legacyEncoding(invalidLines)
}
