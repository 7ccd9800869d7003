import type { DetectOptions } from '../csv/csv.ts'
import { describeBinary } from '../csv/encoding.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/** The content of a list file as text, whatever the format of the file. */
export type ListContent = {
  readonly format: 'text' | 'gzip' | 'zip' | 'xlsx'
  /** The sheet that is read and the names of all sheets; null if the file is not a workbook. */
  readonly workbook: { readonly sheet: string; readonly sheets: readonly string[] } | null
  /** Properties that the format determines, so that they are not detected; other sheets. */
  readonly known: Pick<DetectOptions, 'encoding' | 'delimiter' | 'elsewhere'>
  /** Reads the text from its start. Throws EvError `bad_input` for a damaged file. */
  read(): AsyncIterable<Uint8Array>
}

export type ContentOptions = {
  /** Name of the sheet; the first visible one if left out. */
  readonly sheet?: string | undefined
  /** Maximum size of the text, and of the parts of a workbook, when they are expanded. */
  readonly expandedBytesMax: number
  /** Size up to which the ratio to the size of the file is not checked. Default: 16 MiB. */
  readonly expandedBytesFree?: number | undefined
}

export const GZIP = '1f8b'
export const ZIP = '504b0304'
/** Compound File Binary: .xls, and encrypted workbooks. */
export const OLE = 'd0cf11e0'

export const textContent = (
  format: ListContent['format'],
  read: ListContent['read'],
): ListContent => ({
  format,
  workbook: null,
  known: {},
  read,
})

/** Rejects content of a compressed file that is not text. */
export async function* guardText(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isFirst = true
  for await (const chunk of bytes) {
    const signature = Buffer.from(chunk.subarray(0, 4)).toString('hex')
    if (isFirst && [GZIP, ZIP, OLE].some(start => signature.startsWith(start))) {
      throw new EvError(
        'bad_input',
        'The compressed file contains a workbook or another compressed file. Extract that file and use it.',
      )
    }
    const format = isFirst ? describeBinary(chunk) : null
    if (format !== null) throw notText(format)
    isFirst = false
    yield chunk
  }
}

export const notWorkbook = (sheet: string) =>
  new EvError(
    'bad_input',
    `The list is not a workbook (.xlsx), so it has no sheet "${sanitizeText(sheet, 40)}". Omit the sheet.`,
  )

export const notText = (format: string) =>
  new EvError(
    'bad_input',
    `The list is ${format}, not a text file. A list is CSV, TSV, one address per line or an Excel workbook (.xlsx), also compressed with gzip or ZIP. Save it in one of these formats.`,
  )
