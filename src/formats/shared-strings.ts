import { EvError } from '../platform/error.ts'
import { formatMebibytes, formatNumber } from '../platform/format.ts'
import { decodeEscapes } from './cell-text.ts'
import { parseXml } from './xml.ts'

/** Texts are stored in blocks of this size, each text within one block. */
const BLOCK_BYTES = 4 * 1024 * 1024
/** Longer texts are truncated. A cell has at most 32,767 characters, in UTF-8 at most 98,301 bytes. */
const TEXT_LENGTH_MAX = 32_767
/** Texts whose positions are allocated together. */
const POSITIONS_BLOCK = 64 * 1024
/** Bytes of the position of a text. */
const POSITION_BYTES = 12
/** A million rows with four different texts each; more are better saved as CSV. */
const TEXTS_MAX = 4_000_000
/** Memory of all texts. A million addresses take 40 MB. */
const MEMORY_BYTES_MAX = 128 * 1024 * 1024

/**
 * The texts that cells refer to by number. They are stored as UTF-8 outside the heap: as JavaScript
 * strings, the million addresses of a large list would take three times as much.
 */
export class SharedStrings {
  readonly #blocks: Buffer[] = []
  /** Free space starts here in the last block. */
  #used = 0
  /** Block, start and end of each text. */
  readonly #positions: Uint32Array[] = []
  #size = 0
  #bytes = 0
  readonly #bytesMax: number
  readonly #textsMax: number

  constructor({ bytesMax = MEMORY_BYTES_MAX, textsMax = TEXTS_MAX } = {}) {
    this.#bytesMax = bytesMax
    this.#textsMax = textsMax
  }

  add(text: string): void {
    const bytes = Buffer.from(text.slice(0, TEXT_LENGTH_MAX))
    this.#bytes += bytes.length + POSITION_BYTES
    if (this.#size === this.#textsMax) {
      throw new EvError(
        'bad_input',
        `The workbook has more than ${formatNumber(this.#textsMax)} different texts, the limit for a workbook. Save the sheet as CSV.`,
      )
    }
    if (this.#bytes > this.#bytesMax) {
      throw new EvError(
        'bad_input',
        `The different texts of the workbook take more than ${formatMebibytes(this.#bytesMax)}, the limit for a workbook. Save the sheet as CSV.`,
      )
    }
    if (this.#blocks.length === 0 || this.#used + bytes.length > BLOCK_BYTES) {
      this.#blocks.push(Buffer.allocUnsafe(BLOCK_BYTES))
      this.#used = 0
    }
    bytes.copy(this.#blocks.at(-1) as Buffer, this.#used)
    this.#addPosition(this.#used, this.#used + bytes.length)
    this.#used += bytes.length
  }

  #addPosition(start: number, end: number) {
    const at = this.#size % POSITIONS_BLOCK
    if (at === 0) this.#positions.push(new Uint32Array(3 * POSITIONS_BLOCK))
    this.#positions.at(-1)?.set([this.#blocks.length - 1, start, end], 3 * at)
    this.#size += 1
  }

  /** Returns the text with this number, from 0; null if there is none. */
  get(number: number): string | null {
    if (!(Number.isInteger(number) && number >= 0 && number < this.#size)) return null
    const positions = this.#positions[Math.floor(number / POSITIONS_BLOCK)]
    const at = 3 * (number % POSITIONS_BLOCK)
    const block = this.#blocks[positions?.[at] ?? -1]
    return block?.toString('utf8', positions?.[at + 1], positions?.[at + 2]) ?? null
  }
}

/** Reads `sharedStrings.xml`. Phonetic hints are left out, runs of rich text are joined. */
export async function readSharedStrings(bytes: AsyncIterable<Uint8Array>): Promise<SharedStrings> {
  const strings = new SharedStrings()
  let text: string | null = null
  let isText = false
  let isPhonetic = false
  await parseXml(bytes, {
    open(name) {
      if (name === 'si') text = ''
      isText = name === 't' && !isPhonetic
      if (name === 'rPh') isPhonetic = true
    },
    text(part) {
      if (isText && text !== null && text.length < TEXT_LENGTH_MAX) text += part
    },
    close(name) {
      isText = false
      if (name === 'rPh') isPhonetic = false
      if (name !== 'si') return
      strings.add(decodeEscapes(text ?? ''))
      text = null
    },
  })
  return strings
}
