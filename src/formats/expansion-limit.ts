import { EvError } from '../platform/error.ts'
import { formatMebibytes, formatNumber } from '../platform/format.ts'

/**
 * A compressed file may expand to this many times its size. Text and workbooks expand 3 to 60
 * times; DEFLATE expands at most 1,032 times, which only repeated bytes reach.
 */
const EXPANSION_RATIO_MAX = 200
/** Below this size the ratio is not checked: such a file costs little, however it is compressed. */
const EXPANSION_FREE_BYTES = 16 * 1024 * 1024

/** Counts the bytes that a compressed file expands to, and stops decompression bombs. */
export class ExpansionLimit {
  readonly #bytesMax: number
  readonly #ratioBytesMax: number
  #bytes = 0

  /**
   * `size` is the size of the compressed file, `bytesMax` the maximum when expanded. The ratio is
   * not checked up to `bytesFree`.
   */
  constructor(size: number, bytesMax: number, bytesFree = EXPANSION_FREE_BYTES) {
    this.#bytesMax = bytesMax
    this.#ratioBytesMax = Math.max(bytesFree, size * EXPANSION_RATIO_MAX)
  }

  /** Throws EvError `bad_input` if the file has expanded beyond a limit. */
  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#bytesMax) {
      throw new EvError(
        'bad_input',
        `The list is larger than ${formatMebibytes(this.#bytesMax)} when it is expanded, the limit for a compressed list. Split it.`,
      )
    }
    if (this.#bytes > this.#ratioBytesMax) {
      throw new EvError(
        'bad_input',
        `The list expands to more than ${formatNumber(EXPANSION_RATIO_MAX)} times its size, the limit for a compressed list. Expand it and use the expanded file.`,
      )
    }
  }
}

/** Passes bytes through while they are within the limit. */
export async function* limitExpansion(
  bytes: AsyncIterable<Uint8Array>,
  limit: ExpansionLimit,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    limit.add(chunk.byteLength)
    yield chunk
  }
}
