import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TextDecoder } from 'node:util'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/**
 * The most plausible encoding (a WHATWG label) of lines that are not UTF-8. Firefox's detector, chardetng, judges by
 * pairs of letters; the two encodings of old Macs, which it does not know, are taken where its choice gives no text.
 */
function legacyEncoding(lines: readonly Uint8Array[]): string {
  const sample = Buffer.concat(lines.slice(0, SAMPLE_LINES)).subarray(0, SAMPLE_BYTES)
  if (SIGNS_OF_1252.test(new TextDecoder('windows-1252').decode(sample))) return 'windows-1252'
  const detected = detect(sample).toLowerCase()
  const guess = WIDER[detected] ?? detected
  const mismatchesOf = (encoding: string) => mismatches(new TextDecoder(encoding).decode(sample))
  const count = mismatchesOf(guess) + (guess === 'windows-1252' ? foreignTo1252(sample) : 0)
  return MAC.find(encoding => mismatchesOf(encoding) * 2 < count) ?? guess
}

/** A few hundred words settle it. */
const SAMPLE_LINES = 200
const SAMPLE_BYTES = 8 * 1024

/** ASCII beside quotation marks, dashes and signs that stand before no letter: nothing for a detector to judge by. */
const SIGNS_OF_1252 = /^(?:\p{ASCII}|[‘’‚“”„–—…•«»¿¡ ]|[£€©®°²³](?!\p{L}))*$/u

/** GBK is part of GB 18030. */
const WIDER: Readonly<Record<string, string>> = { gbk: 'gb18030' }
const MAC = ['macintosh', 'x-mac-cyrillic']
/**
 * What text seldom has, but text that was read wrongly often does: control characters, signs and large letters within
 * words, letters of two scripts side by side.
 */
const mismatches = (text: string): number => text.match(MISFIT)?.length ?? 0

const MISFIT = new RegExp(
  [
    '[\\u0080-\\u009F\\uFFFD]',
    // A sign grown into a word: what Macs write for é is Ž elsewhere, ß is §, Ö is …
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

/** The languages of windows-1252 hardly use š and ž; on Macs their bytes are ö and û. */
const foreignTo1252 = (sample: Uint8Array): number =>
  new TextDecoder('windows-1252').decode(sample).match(/[šž]/g)?.length ?? 0

/** The functions of chardetng-wasm, which is loaded by hand: Node imports no wasm without a flag. */
type Chardetng = {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly __wbindgen_malloc: (length: number) => number
  readonly __wbindgen_add_to_stack_pointer: (by: number) => number
  readonly detect: (returned: number, bytes: number, length: number) => void
}

/** What TypeScript's types of Node leave out. */
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
  // Two words on its stack: where the name is, and how long.
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
