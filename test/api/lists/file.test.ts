import { describe, expect, test } from 'vitest'
import { createUploadService, FORM, form } from '../../support/list-form.ts'

describe('POST /v1/verify/file', () => {
  test('creates a job from a file, and reports what it detected', async () => {
    const { upload, worker, job, left } = await createUploadService()
    const response = await upload('name,email\nAnn,ann@a.test\nBob,bob@a.test\nX,nonsense\n')
    expect(response.status).toBe(200)
    const body = (await response.json()) as { job_id: string }
    const { job_id } = body
    expect(body).toEqual({
      success: true,
      job_id: expect.stringMatching(/^job_/),
      status: 'queued',
      total_emails: 3,
      valid_emails: 2,
      invalid_format_emails: 1,
      no_address: 0,
      estimated_time: '10 seconds',
      message: `File queued. Check GET /v1/jobs/${job_id}`,
      duplicates: 0,
      status_url: `https://ev.test/v1/jobs/${job_id}`,
      download_url: `https://ev.test/v1/jobs/${job_id}/download`,
      column: 'email',
      column_number: 2,
      header: true,
      encoding: 'utf-8',
      sheet: null,
      rows: 3,
      address_columns: [2],
      has_several: false,
      all_addresses: false,
      external_source: null,
      kept_external: 0,
    })
    expect(await job()).toMatchObject({ id: job_id, type: 'file', state: 'queued' })
    expect(worker).toMatchObject({ taken: [job_id] })
    expect(left()).toEqual([])
  })

  test('refuses a file with too many columns, or too many for its number of rows', async () => {
    const { upload, rows, left } = await createUploadService()
    const wide = await upload(`email${','.repeat(900_000)}\n${'a@a.test\n'.repeat(2_000)}`)
    expect(wide.status).toBe(400)
    expect(await wide.json()).toMatchObject({
      error: expect.stringMatching(/columns, but a list has at most 32,768\. Remove columns/),
    })
    const long = await upload(`email${','.repeat(32_767)}\n${'a@a.test\n'.repeat(3_200)}`)
    expect(long.status).toBe(400)
    expect(await long.json()).toMatchObject({
      code: 'too_many_emails',
      error:
        'The file has 32,768 columns and more than 3,051 rows, which is the maximum for so many columns. Remove columns, or split it.',
    })
    const names = Array.from({ length: 700 }, () => 'x'.repeat(200))
    const named = await upload(`email,${names.join()}\na@a.test\n`)
    expect(await named.json()).toMatchObject({
      error:
        'The names of the columns have 140,005 characters; a file may have 131,072. Shorten them, or remove columns.',
    })
    expect([await rows(), left()]).toEqual([[], []])
  })

  test.each(['column', 'sheet', 'encoding', 'name'])('refuses a long %s', async field => {
    const { upload, left } = await createUploadService()
    const response = await upload('email\na@a.test\n', { [field]: 'x'.repeat(2_000) })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: expect.stringMatching(`^"${field}" has 2,000 characters; it must have at most `),
    })
    expect(left()).toEqual([])
  })

  test('keeps the cells of each row and how the file was written', async () => {
    const { upload, rows, job } = await createUploadService()
    await upload('\uFEFFname;email\r\n"Lee; Ann";ann@a.test\r\nBob; bob@a.test ;more\r\n')
    expect((await rows()).map(({ text, cells }) => [text, JSON.parse(cells ?? '')])).toEqual([
      ['ann@a.test', ['Lee; Ann', 'ann@a.test']],
      ['bob@a.test', ['Bob', ' bob@a.test ', 'more']],
    ])
    expect(JSON.parse((await job())?.source ?? '')).toMatchObject({
      dialect: { delimiter: ';', header: ['name', 'email'], column: 1, newline: '\r\n', bom: true },
    })
  })

  test.each<[string, Record<string, string>, object]>([
    ['by its name', { column: 'Work' }, { column: 'work', column_number: 3 }],
    ['by its number', { column: '2' }, { column: 'home', column_number: 2 }],
    [
      'without a header',
      { column: '2', header: 'false' },
      { column: null, header: false, rows: 2 },
    ],
  ])('accepts the column as %s', async (_, fields, found) => {
    const { upload } = await createUploadService()
    const response = await upload('id,home,work\n1,a@a.test,b@a.test\n', fields)
    expect(await response.json()).toMatchObject(found)
  })

  const BOOK = 'name,email,other\nAnn,a@a.test b@b.test,c@c.test\nBob,d@d.test,\n'

  test('has one row for each row, and tells which addresses are not verified', async () => {
    const { upload, rows } = await createUploadService()
    expect(await (await upload(BOOK)).json()).toMatchObject({
      rows: 2,
      valid_emails: 1,
      column_number: 2,
      address_columns: [2, 3],
      has_several: true,
      all_addresses: false,
    })
    expect((await rows()).map(({ text }) => text)).toEqual(['a@a.test b@b.test', 'd@d.test'])
  })

  test('with all_addresses, has a row for each address, with the cells of its row', async () => {
    const { upload, rows } = await createUploadService()
    const response = await upload(BOOK, { all_addresses: 'true' })
    expect(await response.json()).toMatchObject({ rows: 4, valid_emails: 4, all_addresses: true })
    expect((await rows()).map(({ text, cells }) => [text, JSON.parse(cells ?? '')[0]])).toEqual([
      ['a@a.test', 'Ann'],
      ['b@b.test', 'Ann'],
      ['c@c.test', 'Ann'],
      ['d@d.test', 'Bob'],
    ])
  })

  test('of pasted recipients has a row for each', async () => {
    const { upload, rows } = await createUploadService()
    const sent = await upload('Ann <a@a.test>; Bob <b@b.test>\nc@c.test; a@a.test')
    expect(await sent.json()).toMatchObject({ rows: 4, duplicates: 1, all_addresses: true })
    expect((await rows()).map(({ text, cells }) => [text, JSON.parse(cells ?? '')])).toEqual([
      ['a@a.test', ['Ann <a@a.test>']],
      ['b@b.test', ['Bob <b@b.test>']],
      ['c@c.test', ['c@c.test']],
      ['a@a.test', ['a@a.test']],
    ])
  })

  test('accepts name and deduplicate, before or after the file', async () => {
    const { send, job } = await createUploadService()
    const file = { file: 'a@a.test\na@a.test\n' }
    await send(
      form([
        ['name', 'March'],
        ['file', file],
        ['deduplicate', 'false'],
      ]),
    )
    expect(await job()).toMatchObject({ name: 'March', total: 2, duplicates: 0 })
  })

  test.each([
    ['customers.csv', 'customers.csv'],
    ['Kunden März.xlsx', 'Kunden März.xlsx'],
    ['C:\\lists\\march.csv', 'march.csv'],
    ['../../etc/march.csv', 'march.csv'],
    ['a\u0007b\u202ec.csv', 'abc.csv'],
    [`${'x'.repeat(300)}.csv`, `${'x'.repeat(199)}…`],
    ['..', null],
  ])('without a name, is named %j as the file: %j', async (fileName, name) => {
    const { send, json } = await createUploadService()
    const response = await send(form([['file', { file: 'a@a.test\n', name: fileName }]]))
    const { job_id } = (await response.json()) as { job_id: string }
    expect(await json(`/v1/jobs/${job_id}`)).toMatchObject({ name })
    expect(await json('/v1/jobs')).toMatchObject({ data: { items: [{ job_id, name }] } })
  })

  test('accepts a part that was sent as text', async () => {
    const { send } = await createUploadService()
    const response = await send(form([['file', 'a@a.test\nb@a.test\n']]))
    expect(await response.json()).toMatchObject({ rows: 2, header: false })
  })

  test('creates one job for an Idempotency-Key, and another file is another request', async () => {
    const { send, database } = await createUploadService()
    const headers = { 'Idempotency-Key': 'one' }
    const body = form([['file', { file: 'a@a.test\n' }]])
    const [first, second] = [await send(body, { headers }), await send(body, { headers })]
    expect(second.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await second.text()).toBe(await first.text())
    const other = await send(form([['file', { file: 'b@a.test\n' }]]), { headers })
    expect(other.status).toBe(422)
    expect(await database.db.selectFrom('job').select('id').execute()).toHaveLength(1)
  })
})

describe('a file is refused', () => {
  test.each<[string, string | Uint8Array, Record<string, string>, RegExp]>([
    ['that is empty', '', {}, /The list is empty/],
    ['without addresses', 'name,city\nAnn,Paris\n', {}, /1 name, 2 city.*the field column/],
    [
      'whose column does not exist',
      'name,email\nA,a@a.test\n',
      { column: 'mial' },
      /^column "mial" is not a column .* header=false/,
    ],
    ['that is a damaged workbook', Buffer.from('PK\x03\x04 and more'), {}, /workbook is damaged/],
    [
      'with a row beyond a megabyte',
      `a@a.test\n"${'x'.repeat(1_100_000)}"\n`,
      {},
      /on line 2 is longer/,
    ],
    [
      'with header=maybe',
      'a@a.test\n',
      { header: 'maybe' },
      /^"header" is "maybe"; it must be true/,
    ],
    [
      'with a field that is too long',
      'a@a.test\n',
      { name: 'x'.repeat(100_000) },
      /"name" is too long/,
    ],
  ])('%s, and the error uses the names of the API', async (_, file, fields, error) => {
    const { upload, job, left } = await createUploadService()
    const response = await upload(file, fields)
    expect(response.status).toBe(400)
    const body = (await response.json()) as { error: string }
    expect(body.error).toMatch(error)
    expect(body.error).not.toContain('--')
    expect(await job()).toBeUndefined()
    expect(left()).toEqual([])
  })

  test('with only a header', async () => {
    const { upload, job } = await createUploadService()
    const response = await upload('name,email\n')
    expect(await response.json()).toMatchObject({ code: 'empty_list' })
    expect(await job()).toBeUndefined()
  })

  test.each<[string, Uint8Array | string, string, number, RegExp]>([
    ['without a file', form([['name', 'x']]), FORM, 400, /no file in a field named "file"/],
    [
      'with two files',
      form([
        ['file', { file: 'a@a.test' }],
        ['file', { file: 'b' }],
      ]),
      FORM,
      400,
      /more than one file/,
    ],
    [
      'with a field twice',
      form([
        ['column', 'email'],
        ['column', 'work'],
        ['file', { file: 'email,work\na@a.test,b@a.test' }],
      ]),
      FORM,
      400,
      /it has the field "column" twice/,
    ],
    [
      'with the file in another field',
      form([['list', { file: 'a@a.test' }]]),
      FORM,
      400,
      /in the field "list"/,
    ],
    [
      'that is truncated',
      form([['file', { file: 'a@a.test\n' }]]).subarray(0, -20),
      FORM,
      400,
      /ends too early/,
    ],
    [
      'that is truncated in the header of a part',
      form([['file', { file: 'a@a.test\n' }]]).subarray(0, 90),
      FORM,
      400,
      /ends too early/,
    ],
    [
      'that is truncated in a file of another field',
      form([['list', { file: 'a@a.test\n' }]]).subarray(0, -20),
      FORM,
      400,
      /ends too early/,
    ],
    [
      'with a delimiter after the last one',
      Buffer.concat([form([]), form([['file', { file: 'a@a.test\n' }]])]),
      FORM,
      400,
      /no file in a field named "file"/,
    ],
    [
      'with an encoded file',
      form([['file', { file: 'a=40a.test\n' }]])
        .toString()
        .replace('Content-Type:', 'Content-Transfer-Encoding: quoted-printable\r\nContent-Type:'),
      FORM,
      400,
      /Content-Transfer-Encoding quoted-printable/,
    ],
    ['that is garbage', 'garbage', FORM, 400, /cannot be read/],
    ['without a boundary', 'x', 'multipart/form-data', 400, /Content-Type has no boundary/],
    ['of JSON', '{}', 'application/json', 415, /multipart\/form-data/],
  ])('in a form %s', async (_, body, type, status, error) => {
    const { send, left, job } = await createUploadService()
    const response = await send(body, { headers: { 'Content-Type': type } })
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(error) })
    expect(response.status).toBe(status)
    expect(left()).toEqual([])
    expect(await job()).toBeUndefined()
  })
})
