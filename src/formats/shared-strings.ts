import { EvError } from '../platform/error.ts'
import { formatMebibytes } from '../platform/format.ts'
import { decodeEscapes } from './cell-text.ts'
import { parseXml } from './xml.ts'

/** Texts are stored in blocks of this size, each text within one block. */
const BLOCK_BYTES = 4 * 1024 * 1024
/** Longer texts are truncated. A cell has at most 32,767 characters, in UTF-8 at most 98,301 bytes. */
const TEXT_LENGTH_MAX = 32_767
const CAPACITY_MIN = 1_024
/** Bytes of the position of a text. */
const POSITION_BYTES = 12
/**
 * Memory of all texts. A million addresses take 40 MB; more than this is hostile, or a sheet that
 * is better saved as CSV.
 */
const MEMORY_BYTES_MAX = 256 * 1024 * 1024

/**
 * The texts that cells refer to by number. They are stored as UTF-8 outside the heap: as JavaScript
 * strings, the million addresses of a large list would take three times as much.
 */
export class SharedStrings {
  readonly #blocks: Buffer[] = []
  /** Free space starts here in the last block. */
  #used = 0
  /** Block, start and end of each text. */
  #positions = new Uint32Array(3 * CAPACITY_MIN)
  #size = 0
  #bytes = 0
  readonly #bytesMax: number

  constructor(bytesMax = MEMORY_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  add(text: string): void {
    const bytes = Buffer.from(text.slice(0, TEXT_LENGTH_MAX))
    this.#bytes += bytes.length + POSITION_BYTES
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
    const at = 3 * this.#size
    if (at === this.#positions.length) {
      const wider = new Uint32Array(2 * this.#positions.length)
      wider.set(this.#positions)
      this.#positions = wider
    }
    this.#positions[at] = this.#blocks.length - 1
    this.#positions[at + 1] = start
    this.#positions[at + 2] = end
    this.#size += 1
  }

  /** Returns the text with this number, from 0. Throws EvError `bad_input` if there is none. */
  get(number: number): string {
    const at = 3 * number
    const block = this.#blocks[this.#positions[at] ?? -1]
    if (block === undefined || number >= this.#size) {
      throw new EvError('bad_input', 'a cell refers to a text that does not exist')
    }
    return block.toString('utf8', this.#positions[at + 1], this.#positions[at + 2])
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
