import { deepEqual, fail } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { ZipFile } from 'yazl'
import { detectDialect } from '../../../src/csv/csv.ts'
import { openContent } from '../../../src/formats/open-content.ts'
import { createSheetWriter } from '../../../src/formats/sheet-writer.ts'
import { zipSheet } from '../../../src/formats/sheet-zip.ts'
import { EvError } from '../../../src/platform/error.ts'
import type { FuzzTarget } from '../target.ts'

const EXPANDED_BYTES_MAX = 1024 * 1024
/** Text of a file with few bytes: a workbook pads its rows. */
const OPTIONS = { expandedBytesMax: EXPANDED_BYTES_MAX, expandedBytesFree: EXPANDED_BYTES_MAX }
const LIST = 'email,name\nann@mail.example,Ann\nbob@mail.example,"B, C"\n'

const folder = mkdtempSync(join(tmpdir(), 'ev-fuzz-file-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/** A file of any format is refused with a sentence, or has the same text each time. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    const path = join(folder, 'list')
    writeFileSync(path, bytes)
    deepEqual(await read(path), await read(path))
  },
  async *seeds() {
    yield LIST
    yield gzipSync(LIST)
    yield await zip({ 'list.csv': LIST })
    const sheet = createSheetWriter(detectDialect(Buffer.from(LIST)), ['status', 'score'])
    const row = { cells: ['ann@mail.example', '=1+1'], values: ['deliverable', 0.5] }
    yield await buffer(
      zipSheet(Readable.from([sheet.header(), ...sheet.rows([row, row]), sheet.end])),
    )
    // Stored, not compressed: changes reach the parts.
    yield await zip({
      '[Content_Types].xml': '<Types/>',
      'xl/workbook.xml':
        '<workbook><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
      'xl/_rels/workbook.xml.rels':
        '<Relationships><Relationship Id="r1" Type="x/worksheet" Target="s.xml"/></Relationships>',
      'xl/s.xml':
        '<worksheet><sheetData><row><c t="str"><v>a@mail.example</v></c></row></sheetData></worksheet>',
    })
  },
  lengthMax: 8_192,
}

async function zip(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const archive = new ZipFile()
  for (const [name, text] of Object.entries(files)) {
    archive.addBuffer(Buffer.from(text), name, { compress: false, mtime: new Date(0) })
  }
  archive.end()
  return await buffer(archive.outputStream as Readable)
}

async function read(path: string): Promise<string> {
  try {
    const content = await openContent(path, OPTIONS)
    const text = await buffer(content.read())
    if (text.length > EXPANDED_BYTES_MAX) fail(`${text.length} bytes were expanded`)
    return `${content.format} ${content.workbook?.sheet} ${text.toString('latin1')}`
  } catch (error) {
    if (!(error instanceof EvError) || error.code !== 'bad_input') throw error
    return error.message
  }
}
