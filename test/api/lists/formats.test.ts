import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { objectsOf, rowsOf } from '../../support/csv.ts'
import { createUploadService, FORM, form } from '../../support/list-form.ts'
import { createSimulatedList } from '../../support/list-service.ts'
import { createTestService } from '../../support/service.ts'
import { readWorkbook, textRow, workbookOf, zipOf } from '../../support/workbook.ts'

const CSV = 'name,email\nAnn,ann@a.test\n'
const SHEET = textRow('name', 'email') + textRow('Ann', 'ann@a.test')

const rowsOfWorkbook = async (bytes: ArrayBuffer) =>
  objectsOf((await readWorkbook(new Uint8Array(bytes))).rows)

describe('POST /v1/verify/file', () => {
  test.each<[string, () => Promise<Uint8Array>]>([
    ['xlsx', () => workbookOf({ sheet: SHEET })],
    ['gzip', async () => gzipSync(CSV)],
    ['zip', () => zipOf({ 'list.csv': CSV })],
  ])('accepts the format %s', async (format, file) => {
    const { upload, rows, left } = await createUploadService()
    const sheet = format === 'xlsx' ? 'Customers' : null
    const bytes = await file()
    const seen = await (await upload(bytes, { dry_run: 'true' })).json()
    expect(seen).toMatchObject({
      format,
      sheet,
      sheets: sheet === null ? [] : [sheet],
      rows: 1,
      column: 'email',
      encoding: 'utf-8',
      preview: [['Ann', 'ann@a.test']],
    })
    const response = await upload(bytes)
    expect([response.status, await response.json()]).toEqual([
      200,
      expect.objectContaining({ sheet, rows: 1, column: 'email' }),
    ])
    expect(await rows()).toEqual([{ text: 'ann@a.test', cells: '["Ann","ann@a.test"]' }])
    expect(left()).toEqual([])
  })

  test('reads the sheet of the form', async () => {
    const { upload } = await createUploadService()
    const sheets = { A: SHEET, B: textRow('bob@b.test') }
    const file = await workbookOf({ sheets })
    expect(await (await upload(file, { sheet: 'B', dry_run: 'true' })).json()).toMatchObject({
      sheet: 'B',
      sheets: ['A', 'B'],
      preview: [['bob@b.test']],
    })
    const response = await upload(file, { sheet: 'C' })
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'The workbook has no sheet "C". Its sheets: A, B.' }),
    ])
  })

  test('names the other sheets of a workbook if the first one has no addresses', async () => {
    const { upload } = await createUploadService()
    for (const cover of [textRow('Customers'), '']) {
      const response = await upload(await workbookOf({ sheets: { Cover: cover, Äb: SHEET } }))
      expect([response.status, await response.json()]).toEqual([
        400,
        expect.objectContaining({
          error: expect.stringMatching(/ This is the sheet "Cover"; others are Äb\.$/),
        }),
      ])
    }
  })

  test.each<[string, () => Promise<Uint8Array>, RegExp]>([
    [
      'a decompression bomb',
      async () => gzipSync(Buffer.alloc(20_000_000, 'a@b.test\n')),
      /200 times its size/,
    ],
    [
      'an archive of two files',
      () => zipOf({ 'a.csv': CSV, 'b.csv': CSV }),
      /2 files: a\.csv, b\.csv/,
    ],
    ['an old workbook', async () => Buffer.from('d0cf11e0a1b11ae1', 'hex'), /old Excel workbook/],
    ['a damaged archive', async () => (await zipOf({ 'a.csv': CSV })).subarray(0, 60), /damaged/],
  ])('refuses %s and leaves nothing', async (_, file, error) => {
    const { upload, job, left } = await createUploadService()
    const response = await upload(await file())
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: string }).error).toMatch(error)
    expect([await job(), left()]).toEqual([undefined, []])
  })

  test('a form can be compressed', async () => {
    const { send, rows, left } = await createUploadService()
    const headers = { 'Content-Encoding': 'gzip', 'Content-Type': FORM }
    const body = gzipSync(form([['file', { file: CSV }]]))
    expect((await send(body, { headers })).status).toBe(200)
    expect(await rows()).toHaveLength(1)
    expect((await send(body.subarray(0, 60), { headers })).status).toBe(400)
    const brotli = await send(body, { headers: { ...headers, 'Content-Encoding': 'br' } })
    expect([brotli.status, await brotli.json()]).toEqual([
      415,
      expect.objectContaining({ error: expect.stringContaining('or with gzip') }),
    ])
    expect(left()).toEqual([])
  })
})

describe('a list in a compressed body', () => {
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }

  test.each(['/v1/verify/bulk', '/v1/verify/batch'])('is accepted by %s', async path => {
    const { request } = await createTestService()
    const emails = Array.from({ length: 12 }, (_, i) => `valid${i}@a.example`)
    const send = (body: Uint8Array) => request(path, { body, headers })
    const response = await send(gzipSync(JSON.stringify({ emails })))
    expect([response.status, await response.json()]).toEqual([
      ...[200, expect.objectContaining({ total_emails: 12 })],
    ])
    const broken = await send(gzipSync('{}').subarray(0, 10))
    expect([broken.status, await broken.json()]).toEqual([
      ...[400, expect.objectContaining({ error: 'The request body is not valid gzip.' })],
    ])
    expect((await send(gzipSync(Buffer.alloc(17 * 1024 * 1024, ' ')))).status).toBe(413)
  })
})

describe('a download as a workbook', () => {
  const TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

  test('has the columns of CSV and no escaped cells', async () => {
    const { id, path, request } = await createSimulatedList([
      { email: 'valid@a.example', id: '=1' },
      { email: '=1+1@a.example' },
    ])
    const response = await request(`${path}/download?format=xlsx`)
    expect(response.headers.get('Content-Type')).toBe(TYPE)
    expect(response.headers.get('Content-Disposition')).toContain(`filename="${id}.xlsx"`)
    const rows = await rowsOfWorkbook(await response.arrayBuffer())
    const csv = rowsOf(await (await request(`${path}/download?raw=1`)).text())
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys(csv[0] ?? {}))
    expect(rows.map(({ email, id, valid }) => [email, id, valid])).toEqual([
      ['valid@a.example', '=1', 'TRUE'],
      ['=1+1@a.example', '', csv[1]?.valid?.toUpperCase()],
    ])
  })

  test('has the columns of an uploaded workbook, and many pages of rows', async () => {
    const { upload, rows, database, request, job } = await createUploadService()
    const count = 1_200
    const sheet =
      textRow('zip', 'email') +
      Array.from({ length: count }, (_, i) => textRow(`0${i}`, `valid${i}@a.example`)).join('')
    await upload(await workbookOf({ sheet }))
    expect(await rows()).toHaveLength(count)
    const { id } = (await job()) as { id: string }
    await database.db
      .updateTable('item')
      .set({ class: 'deliverable', result: 'null', state: 'done' })
      .execute()
    const response = await request(`/v1/jobs/${id}/download?format=xlsx&partial=true`)
    const written = await rowsOfWorkbook(await response.arrayBuffer())
    expect(written.map(({ zip }) => zip)).toEqual(Array.from({ length: count }, (_, i) => `0${i}`))
  })
})

describe('a JSON list that expands is refused for what it has, before it is parsed', () => {
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }
  const names = (count: number) => Array.from({ length: count }, (_, n) => `"${n}":0`).join()

  test.each([
    ['many fields', 'batch', `{${names(100_000)}!`, /more than 1,000 fields/],
    ['many objects', 'batch', `{"items":[${'{},'.repeat(500_000)}!`, /more than 400,000 values/],
    ['many numbers', 'bulk', `{"emails":[${'0,'.repeat(200_000)}!`, /more than 100,000 values/],
    ['nested arrays', 'batch', `{"emails":[${'[[[[[]]]]],'.repeat(100_000)}!`, /400,000 values/],
    ['deep arrays', 'batch', `{"emails":${'['.repeat(100_000)}!`, /deeper than 16 levels/],
    [
      'a long address',
      'batch',
      `{"emails":["${'a'.repeat(1_100_000)}!`,
      /more than 1,048,576 bytes/,
    ],
    [
      '5 MiB for 10,000 addresses',
      'bulk',
      ' '.repeat(5 * 1024 * 1024),
      /larger than 4194304 bytes/,
    ],
  ])('%s: %s', async (_, path, text, error) => {
    const { request } = await createTestService()
    const response = await request(`/v1/verify/${path}`, { body: gzipSync(text), headers })
    expect([400, 413]).toContain(response.status)
    expect((await response.json()) as object).toMatchObject({
      error: expect.stringMatching(error),
      code: expect.stringMatching(/^(payload_too_large|invalid_json)$/),
    })
    // It counts against the limit of its key.
    const [limit, remaining] = ['Limit', 'Remaining'].map(name =>
      Number(response.headers.get(`X-RateLimit-${name}`)),
    )
    expect(remaining).toBeLessThan(limit ?? 0)
  })
})
