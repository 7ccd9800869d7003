import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { MINUTE } from '../../src/platform/clock.ts'
import { createUploadService } from '../support/list-form.ts'
import { fc, runs } from '../support/property.ts'
import { textRow, workbookOf, workbookParts, zipOf } from '../support/workbook.ts'

const rows = (length: number) =>
  Array.from({ length }, (_, i) => textRow(`Name ${i}`, `user${i}@a.test`)).join('')
const CSV = 'name,email\n'.repeat(500)
const FILES = [
  await workbookOf({ sheet: rows(200), strings: '<si><t>a</t></si>', styles: '<cellXfs/>' }),
  await zipOf({ 'list.csv': CSV }),
  gzipSync(CSV),
]

/** Returns a function that uploads a file, which may be refused with a message only. */
async function uploads(): Promise<(file: Uint8Array) => Promise<void>> {
  const { upload, clock } = await createUploadService()
  return async file => {
    // Below the limits of requests.
    await clock.advance(MINUTE)
    const response = await upload(file, { dry_run: 'true', column: '1' })
    expect([200, 400]).toContain(response.status)
    if (response.status === 400) expect(await response.json()).toHaveProperty('error')
  }
}

test('a file with changed, missing or added bytes is read or refused', async () => {
  const readOrRefuse = await uploads()
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.uint8Array(),
  })
  const mutations = fc.tuple(
    fc.constantFrom(...FILES),
    fc.array(change, { minLength: 1, maxLength: 5 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.boolean(),
  )
  await fc.assert(
    fc.asyncProperty(mutations, async ([file, changes, share, isCut]) => {
      const mutated = Uint8Array.from(file)
      for (const { at, bytes } of changes) {
        const start = Math.floor(at * mutated.length)
        mutated.set(bytes.subarray(0, mutated.length - start), start)
      }
      await readOrRefuse(isCut ? mutated.subarray(0, Math.floor(share * mutated.length)) : mutated)
    }),
    { numRuns: runs(1_000, 40) },
  )
})

test('a workbook with changed XML is read or refused', async () => {
  const readOrRefuse = await uploads()
  const parts = workbookParts({
    sheet: rows(10),
    styles: '<cellXfs><xf numFmtId="14"/></cellXfs>',
    strings: '<si><t>a</t></si>',
  })
  const snippet = fc.constantFrom(
    ...[
      '<',
      '>',
      '"',
      '&',
      '&#0;',
      '</row>',
      '<row r="-1">',
      '<c r="A0">',
      '<c t="s"><v>-1</v></c>',
    ],
    ...['<v>1e999</v>', '<![CDATA[x]]>', '\0', '<?x?>', '<!--', ' s="99"', 'rId9', '../..', '%zz'],
  )
  const mutations = fc.tuple(
    fc.constantFrom(...Object.keys(parts)),
    fc.double({ min: 0, max: 1, noNaN: true }),
    snippet,
    fc.nat(5),
  )
  await fc.assert(
    fc.asyncProperty(mutations, async ([name, share, inserted, removed]) => {
      const text = parts[name] as string
      const at = Math.floor(share * text.length)
      const changed = text.slice(0, at) + inserted + text.slice(at + removed)
      await readOrRefuse(await zipOf({ ...parts, [name]: changed }))
    }),
    { numRuns: runs(1_000, 40) },
  )
})
