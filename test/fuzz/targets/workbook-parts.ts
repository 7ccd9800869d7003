import { deepEqual, ok } from 'node:assert/strict'
import { readSharedStrings } from '../../../src/formats/shared-strings.ts'
import { readSheetRows, type SheetRow } from '../../../src/formats/sheet-rows.ts'
import { type FuzzTarget, splitBytes, toStream } from '../target.ts'

/** XML of worksheets and shared texts gives the same rows and texts in any chunking. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    const rows = await readRows([bytes])
    deepEqual(await readRows(splitBytes(bytes)), rows)
    for (const { cells, width } of rows ?? []) {
      ok(cells.every(([column], i) => column < width && column > (cells[i - 1]?.[0] ?? -1)))
    }
    deepEqual(await readTexts(splitBytes(bytes)), await readTexts([bytes]))
  },
  *seeds() {
    yield '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" s="1"><v>45000.5</v></c></row><row r="4"><c t="inlineStr"><is><t>a_x000D_b</t></is></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c></row></sheetData></worksheet>'
    yield '<?xml version="1.0" encoding="UTF-8"?><x:worksheet xmlns:x="m"><x:sheetData><x:row><x:c t="str"><x:f>A1</x:f><x:v>&lt;a&#64;b&gt;</x:v></x:c></x:row></x:sheetData></x:worksheet>'
    yield '<sst count="2"><si><t>ann@mail.example</t></si><si><r><t xml:space="preserve">b </t></r><rPh><t>x</t></rPh><r><t>ö</t></r></si></sst>'
    yield Buffer.from('\ufeff<sst><si><t>é</t></si></sst>', 'utf16le')
  },
  lengthMax: 2_048,
}

/** Returns null for malformed XML, whose text may differ. */
async function readRows(chunks: readonly Buffer[]): Promise<SheetRow[] | null> {
  const context = { strings: null, dateStyles: [false, true], is1904: false }
  const rows: SheetRow[] = []
  try {
    for await (const some of readSheetRows(toStream(chunks), context)) rows.push(...some)
    return rows
  } catch {
    return null
  }
}

async function readTexts(chunks: readonly Buffer[]): Promise<(string | null)[] | null> {
  try {
    const strings = await readSharedStrings(toStream(chunks))
    return [0, 1, 2, 3, 999].map(index => strings.get(index))
  } catch {
    return null
  }
}
