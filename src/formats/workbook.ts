import type { Entry } from 'yauzl'
import { EvError } from '../platform/error.ts'
import { formatMebibytes, formatNumber } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { Archive } from './archive.ts'
import { isDateFormat } from './cell-text.ts'
import { type ExpansionLimit, limitExpansion } from './expansion-limit.ts'
import { parseXml } from './xml.ts'

/** The parts of a workbook that its worksheets need. */
export type Workbook = {
  /** Worksheets in the order of their tabs. */
  readonly sheets: readonly Sheet[]
  /** Whether dates count from 1904, as in old versions of Excel for Mac. */
  readonly is1904: boolean
  readonly sharedStrings: Entry | null
  readonly styles: Entry | null
}

type Sheet = { readonly name: string; readonly isHidden: boolean; readonly part: Entry }

/**
 * Expanded size of a part that describes the workbook: its sheets, relationships or styles. Styles
 * have up to some MB.
 */
const DESCRIPTION_BYTES_MAX = 16 * 1024 * 1024
/** A workbook with more sheets cannot be used in a spreadsheet program. */
const SHEETS_MAX = 10_000
/** Characters of the name of a sheet, which has at most 31, or of the path of a part. */
const NAME_LENGTH_MAX = 255
/** The workbook refers to its sheets and to some other parts. */
const RELATIONS_MAX = SHEETS_MAX + 1_000
/** "Excel specifications and limits": 65,490. Programs that write more exist. */
const CELL_FORMATS_MAX = 250_000
/** A number format has at most 255 characters; the start of a longer one is enough. */
const FORMAT_CODE_LENGTH_MAX = 1_000

/** Reads the parts of a workbook within its limit. */
export class WorkbookReader {
  readonly #archive: Archive
  readonly #limit: ExpansionLimit

  constructor(archive: Archive, limit: ExpansionLimit) {
    this.#archive = archive
    this.#limit = limit
  }

  async *bytes(part: Entry): AsyncGenerator<Uint8Array> {
    yield* limitExpansion(await this.#archive.open(part), this.#limit)
  }

  /** Reads a part that is held in memory. Its size is checked when it is read. */
  #description(part: Entry): AsyncIterable<Uint8Array> {
    if (part.uncompressedSize > DESCRIPTION_BYTES_MAX) {
      throw new Error(`${part.fileName} is larger than ${formatMebibytes(DESCRIPTION_BYTES_MAX)}`)
    }
    return this.bytes(part)
  }

  /** Reads the list of sheets. Throws EvError `bad_input` if there is none. */
  async readWorkbook(): Promise<Workbook> {
    const root = await this.#relations('')
    const path = root.find(({ type }) => type === 'officeDocument')?.target ?? ''
    const part = this.#archive.findPart(path)
    if (part === undefined) throw new Error('it has no workbook')
    if (path.endsWith('.bin')) throw binaryWorkbook()
    const relations = await this.#relations(path)
    const sheets: Sheet[] = []
    let is1904 = false
    const targets = new Map(
      relations.filter(({ type }) => type === 'worksheet').map(({ id, target }) => [id, target]),
    )
    await parseXml(this.#description(part), {
      open: (name, attributes) => {
        if (name === 'workbookPr') is1904 = /^(1|true)$/.test(attributes.date1904 ?? '')
        if (name !== 'sheet') return
        const target = targets.get(relationId(attributes) ?? '')
        // A sheet that only has a chart.
        if (target === undefined) return
        const entry = this.#archive.findPart(target)
        if (entry === undefined)
          throw new Error(`the part ${excerpt(target)} of a sheet is missing`)
        if (sheets.length === SHEETS_MAX) throw new Error(`it has more than ${SHEETS_MAX} sheets`)
        const isHidden = /hidden/i.test(attributes.state ?? '')
        const sheetName = (attributes.name ?? '').slice(0, NAME_LENGTH_MAX)
        sheets.push({ name: sheetName, isHidden, part: entry })
      },
    })
    if (sheets.length === 0) throw new EvError('bad_input', 'The workbook has no worksheet.')
    const find = (type: string) =>
      this.#archive.findPart(relations.find(one => one.type === type)?.target ?? '') ?? null
    return { sheets, is1904, sharedStrings: find('sharedStrings'), styles: find('styles') }
  }

  /** Reads which cell styles are dates, by their number. */
  async readDateStyles(part: Entry): Promise<readonly boolean[]> {
    const dateFormats = new Map<string, boolean>()
    const isDate = (id: string) => dateFormats.get(id) ?? isDateFormat(Number(id), null)
    const styles: boolean[] = []
    let isCellFormats = false
    await parseXml(this.#description(part), {
      open(name, { numFmtId = '0', formatCode = '' }) {
        if (name === 'numFmt') {
          const code = formatCode.slice(0, FORMAT_CODE_LENGTH_MAX)
          dateFormats.set(numFmtId, isDateFormat(Number(numFmtId), code))
        }
        if (name === 'cellXfs') isCellFormats = true
        if (name !== 'xf' || !isCellFormats) return
        if (styles.length === CELL_FORMATS_MAX) {
          throw new Error(`it has more than ${formatNumber(CELL_FORMATS_MAX)} cell formats`)
        }
        styles.push(isDate(numFmtId))
      },
      close(name) {
        if (name === 'cellXfs') isCellFormats = false
      },
    })
    return styles
  }

  /** Reads the relationships of a part (ECMA-376 part 2, §9.3); '' is the package. */
  async #relations(path: string): Promise<Relation[]> {
    const at = path.lastIndexOf('/') + 1
    const folder = path.slice(0, at)
    const part = this.#archive.findPart(`${folder}_rels/${path.slice(at)}.rels`)
    const relations: Relation[] = []
    if (part === undefined) return relations
    await parseXml(this.#description(part), {
      open(name, { Id = '', Type = '', Target = '', TargetMode }) {
        // The URL of another workbook may have any length and form.
        if (name !== 'Relationship' || TargetMode === 'External') return
        if (relations.length === RELATIONS_MAX) {
          throw new Error(`a part has more than ${formatNumber(RELATIONS_MAX)} relationships`)
        }
        if (Math.max(Id.length, Target.length) > NAME_LENGTH_MAX) {
          throw new Error('the name of a relationship is too long')
        }
        const type = Type.slice(Type.lastIndexOf('/') + 1)
        relations.push({ id: Id, type, target: resolveTarget(folder, Target) })
      },
    })
    return relations
  }
}

type Relation = { readonly id: string; readonly type: string; readonly target: string }

const excerpt = (path: string) => sanitizeText(path, 80)

const resolveTarget = (folder: string, target: string) =>
  new URL(target, `file:///${folder}`).pathname.slice(1)

/** The prefix of the namespace can be any; other attributes of a sheet are not named `id`. */
const relationId = (attributes: Readonly<Record<string, string>>) =>
  Object.entries(attributes).find(([name]) => name.endsWith(':id'))?.[1]

const binaryWorkbook = () =>
  new EvError(
    'bad_input',
    'The list is a binary workbook (.xlsb), which ev does not read. Save it as .xlsx or CSV.',
  )

/** Number of sheet names in a message. */
const NAMES_SHOWN_MAX = 20

/** Returns the sheet with this name, or the first visible one. Throws EvError `bad_input`. */
export function findSheet({ sheets }: Workbook, name: string | undefined): Sheet {
  const normalize = (text: string) => text.normalize('NFC').trim().toLowerCase()
  const found =
    name === undefined
      ? (sheets.find(({ isHidden }) => !isHidden) ?? sheets[0])
      : (sheets.find(sheet => sheet.name === name) ??
        sheets.find(sheet => normalize(sheet.name) === normalize(name)))
  if (found !== undefined) return found
  throw new EvError(
    'bad_input',
    `The workbook has no sheet "${sanitizeText(name ?? '', 40)}". Its sheets: ${joinNames(sheets)}.`,
  )
}

/** Returns a sentence for messages about a sheet of a workbook that has others, such as a cover. */
export function nameOtherSheets({ sheets }: Workbook, sheet: Sheet): { elsewhere?: string } {
  const others = sheets.filter(other => other !== sheet)
  if (others.length === 0) return {}
  const name = sanitizeText(sheet.name, 40)
  return { elsewhere: `This is the sheet "${name}"; others are ${joinNames(others)}.` }
}

function joinNames(sheets: readonly Sheet[]): string {
  const names = sheets.slice(0, NAMES_SHOWN_MAX).map(sheet => sanitizeText(sheet.name, 40))
  if (sheets.length > names.length) names.push('…')
  return names.join(', ')
}
