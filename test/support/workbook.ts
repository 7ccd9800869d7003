import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { fromBufferPromise } from 'yauzl'
import { ZipFile } from 'yazl'
import { tempFolder } from './database.ts'

/** Creates a ZIP archive of these files. */
export function zipOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<Buffer> {
  const zip = new ZipFile()
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name)
  zip.end()
  return buffer(zip.outputStream as Readable)
}

type Parts = {
  /** Rows of the first sheet in XML, or all sheets by name. */
  readonly sheet?: string
  readonly sheets?: Readonly<Record<string, string>>
  /** Attributes of the sheets by name, such as `state="hidden"`. */
  readonly attributes?: Readonly<Record<string, string>>
  readonly strings?: string
  readonly styles?: string
  readonly is1904?: boolean
}

const RELATION = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const relations = (targets: readonly (readonly [type: string, target: string])[]) =>
  `<Relationships>${targets
    .map(
      ([type, target], i) =>
        `<Relationship Id="rId${i + 1}" Type="${RELATION}/${type}" Target="${target}"/>`,
    )
    .join('')}</Relationships>`

/** Returns the parts of a workbook, each of which a test can replace. */
export function workbookParts(o: Parts): Record<string, string> {
  const sheets = Object.entries(o.sheets ?? { Customers: o.sheet ?? '' })
  const names = sheets.map(
    ([name], i) =>
      `<sheet name="${name}" sheetId="${i + 1}" r:id="rId${i + 1}" ${o.attributes?.[name] ?? ''}/>`,
  )
  return {
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relations([['officeDocument', 'xl/workbook.xml']]),
    'xl/workbook.xml': `<workbook xmlns:r="r"><workbookPr date1904="${o.is1904 ? 1 : 0}"/><sheets>${names.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations([
      ...sheets.map((_, i) => ['worksheet', `worksheets/sheet${i + 1}.xml`] as const),
      ['sharedStrings', '/xl/sharedStrings.xml'],
      ['styles', 'styles.xml'],
    ]),
    ...Object.fromEntries(
      sheets.map(([, rows], i) => [
        `xl/worksheets/sheet${i + 1}.xml`,
        `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
      ]),
    ),
    ...(o.strings === undefined ? {} : { 'xl/sharedStrings.xml': `<sst>${o.strings}</sst>` }),
    ...(o.styles === undefined ? {} : { 'xl/styles.xml': `<styleSheet>${o.styles}</styleSheet>` }),
  }
}

/** Creates a workbook. */
export const workbookOf = (parts: Parts): Promise<Buffer> => zipOf(workbookParts(parts))

/** Returns the XML of a row of inline strings. */
export const textRow = (...cells: readonly string[]): string =>
  `<row>${cells.map(cell => `<c t="inlineStr"><is><t>${cell}</t></is></c>`).join('')}</row>`

/** The sheets of a workbook that ev wrote, and the cells of its only sheet as text. */
export async function readWorkbook(
  file: Uint8Array,
): Promise<{ readonly sheets: readonly string[]; readonly rows: readonly string[][] }> {
  const part = await readParts(file)
  const sheets = [...part('xl/workbook.xml').matchAll(/<sheet name="([^"]*)"/g)]
  const rows = part('xl/worksheets/sheet1.xml').matchAll(/<row [^>]*>(.*?)<\/row>/gs)
  return {
    sheets: sheets.map(([, name = '']) => name),
    rows: [...rows].map(([, cells = '']) => readCells(cells)),
  }
}

/** Returns the cells of a row by their columns; a missing one is empty. */
function readCells(xml: string): string[] {
  const cells: string[] = []
  for (const [, name = '', type, content = ''] of xml.matchAll(CELL)) {
    const column = [...name].reduce((sum, letter) => 26 * sum + letter.charCodeAt(0) - 64, 0)
    const text = content.replace(/<[^>]*>/g, '')
    cells[column - 1] = type === 'b' ? (text === '1' ? 'TRUE' : 'FALSE') : unescapeXml(text)
  }
  return Array.from(cells, cell => cell ?? '')
}

const CELL = /<c r="([A-Z]+)\d+"(?: s="\d+")?(?: t="(\w+)")?>(.*?)<\/c>/gs
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' }

const unescapeXml = (text: string) =>
  text
    .replace(/&(\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole)
    .replace(/_x([0-9A-F]{4})_/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )

/** Returns a function that reads a part of a ZIP archive. */
async function readParts(file: Uint8Array): Promise<(name: string) => string> {
  const zip = await fromBufferPromise(Buffer.from(file))
  const parts = new Map<string, string>()
  for await (const entry of zip.eachEntry()) {
    const stream = await zip.openReadStreamPromise(entry)
    parts.set(entry.fileName, (await buffer(stream)).toString())
  }
  return name => parts.get(name) ?? ''
}

/** Writes a file into a new folder and returns its path. */
export function storeFile(content: string | Uint8Array, name = 'list'): string {
  const path = join(tempFolder(), name)
  writeFileSync(path, content)
  return path
}
