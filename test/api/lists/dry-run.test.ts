import { describe, expect, test } from 'vitest'
import { limitOf } from '../../support/guarded-route.ts'
import { createUploadService, form } from '../../support/list-form.ts'
import { users } from '../../support/recipients.ts'

async function services(options: Parameters<typeof createUploadService>[0] = {}) {
  const fixture = await createUploadService(options)
  const requestPreview = (
    file: string | Uint8Array,
    fields: Readonly<Record<string, string>> = {},
  ) => fixture.upload(file, { dry_run: 'true', ...fields })
  return {
    ...fixture,
    requestPreview,
    seen: async (...args: Parameters<typeof requestPreview>) => {
      const response = await requestPreview(...args)
      expect(response.status).toBe(200)
      return (await response.json()) as Record<string, unknown>
    },
  }
}

/** Addresses, one of them twice, and two malformed ones. */
const LIST =
  'Name,email\nAnn,ann@a.test\nBob,bob@a.test\nAnn,ann@A.TEST\n,nonsense\n,nonsense\nX,x@a.test\n'

describe('POST /v1/verify/file with dry_run', () => {
  test('previews the file and stores nothing', async () => {
    const { seen, job, rows, left, worker, json } = await services({ plan: 'free' })
    expect(await seen(LIST)).toEqual({
      success: true,
      dry_run: true,
      columns: [
        { number: 1, name: 'Name' },
        { number: 2, name: 'email' },
      ],
      column: 'email',
      column_number: 2,
      header: true,
      encoding: 'utf-8',
      delimiter: ',',
      format: 'text',
      sheet: null,
      sheets: [],
      address_columns: [2],
      has_several: false,
      all_addresses: false,
      external_source: null,
      kept_external: 0,
      rows: 6,
      total_emails: 6,
      valid_emails: 4,
      invalid_format_emails: 2,
      no_address: 0,
      duplicates: 2,
      credits_needed: 3,
      credits_balance: 100,
      estimated_time: '10 seconds',
      preview: [
        ['Ann', 'ann@a.test'],
        ['Bob', 'bob@a.test'],
        ['Ann', 'ann@A.TEST'],
        ['', 'nonsense'],
        ['', 'nonsense'],
      ],
    })
    expect([await job(), await rows(), left(), worker.taken]).toEqual([undefined, [], [], []])
    expect((await json('/v1/credits')).data).toMatchObject({
      credits_balance: 100,
      credits_consumed: 0,
      credits_held: 0,
    })
  })

  test.each<[string, string, Record<string, string>]>([
    ['a list with duplicates', LIST, {}],
    ['one with deduplicate: false', LIST, { deduplicate: 'false' }],
    ['one in another dialect', '\uFEFFsep=;\r\nmail;x\r\n"a@a.test";1\r\nb@a.test;2\r\n', {}],
    ['one without a header', 'a@a.test\n\nb@a.test\n', {}],
    [
      'one with a requested column',
      'id,home,work\n1,a@a.test,b@a.test\n2,,c@a.test\n',
      { column: 'home' },
    ],
    ['one with header: false', 'email\na@a.test\n', { header: 'false' }],
  ])('counts like a submitted file: %s', async (_, file, fields) => {
    const { seen, upload, credits } = await services({ plan: 'free' })
    const previewed = await seen(file, fields)
    const real = (await (await upload(file, fields)).json()) as Record<string, unknown>
    const names = [
      ...['total_emails', 'valid_emails', 'invalid_format_emails', 'duplicates', 'rows'],
      ...['column', 'column_number', 'header', 'estimated_time'],
    ]
    for (const name of names) expect([name, previewed[name]]).toEqual([name, real[name]])
    expect(previewed.credits_needed).toBe((await credits()).held)
  })

  test('tells which other columns hold addresses, and previews a row for each on request', async () => {
    const { seen } = await services({ plan: 'free' })
    const list = 'Name,Email,Email 2\nAnn,ann@a.test,lee@a.test\nBob,bob@a.test,\n'
    expect(await seen(list)).toMatchObject({
      column_number: 2,
      address_columns: [2, 3],
      has_several: false,
      all_addresses: false,
      rows: 2,
      credits_needed: 2,
    })
    expect(await seen(list, { all_addresses: 'true' })).toMatchObject({
      address_columns: [2, 3],
      all_addresses: true,
      rows: 3,
      credits_needed: 3,
      preview: [
        ['Ann', 'ann@a.test', 'lee@a.test'],
        ['Ann', 'ann@a.test', 'lee@a.test'],
        ['Bob', 'bob@a.test', ''],
      ],
    })
  })

  test('is no error if no address column is found: the columns are shown, and nothing is counted', async () => {
    const { seen } = await services()
    expect(await seen('name;city\nAnn;Paris\nBob;Rome\n')).toEqual({
      success: true,
      dry_run: true,
      columns: [
        { number: 1, name: 'name' },
        { number: 2, name: 'city' },
      ],
      column: null,
      column_number: null,
      header: true,
      encoding: 'utf-8',
      delimiter: ';',
      address_columns: [],
      has_several: false,
      all_addresses: false,
      external_source: null,
      kept_external: 0,
      format: 'text',
      sheet: null,
      sheets: [],
      rows: null,
      total_emails: null,
      valid_emails: null,
      invalid_format_emails: null,
      no_address: null,
      duplicates: null,
      credits_needed: null,
      credits_balance: null,
      estimated_time: null,
      preview: [
        ['Ann', 'Paris'],
        ['Bob', 'Rome'],
      ],
    })
  })

  test('accepts the column in the next request', async () => {
    const { seen } = await services()
    const shown = await seen('name,city\nAnn,Paris\nBob,Rome\n', { column: '2' })
    expect(shown).toMatchObject({ column: 'city', column_number: 2, invalid_format_emails: 2 })
  })

  test('numbers columns without a name, those of longer rows too', async () => {
    const { seen } = await services()
    const shown = await seen('email,\na@a.test,1\nb@a.test,2,more\n')
    expect(shown.columns).toEqual([
      { number: 1, name: 'email' },
      { number: 2, name: null },
      { number: 3, name: null },
    ])
    expect((await seen('a@a.test\nb@a.test\n')).columns).toEqual([{ number: 1, name: null }])
  })

  test('truncates and sanitizes what it shows', async () => {
    const { seen } = await services()
    const untrusted = `\u001b[31m<b>${'x'.repeat(200)}`
    const shown = await seen(`"${untrusted}",email\n"${untrusted}",a@a.test\n"a\nb",b@a.test\n`)
    const [[first], [second]] = shown.preview as [[string], [string]]
    expect(first).toMatch(/^\uFFFD\[31m<b>x+…$/)
    expect(first).toHaveLength(80)
    expect(second).toBe('a b')
    expect(shown.columns).toEqual([
      { number: 1, name: first },
      { number: 2, name: 'email' },
    ])
  })

  test('shows the first two hundred of very many columns, and the address column', async () => {
    const { seen } = await services()
    const names = Array.from({ length: 300 }, (_, at) => `c${at + 1}`)
    const cells = names.map((_, at) => (at === 249 ? 'a@a.test' : String(at)))
    const shown = await seen(`${names.join(',')}\n${cells.join(',')}\n`)
    expect(shown).toMatchObject({ column: 'c250', column_number: 250, valid_emails: 1 })
    expect(shown.columns).toHaveLength(201)
    expect((shown.columns as object[]).at(-1)).toEqual({ number: 250, name: 'c250' })
    expect((shown.preview as string[][])[0]).toHaveLength(200)
  })

  test('costs nothing in the sandbox', async () => {
    const { send, seen } = await services()
    expect((await seen('a@a.test\n')).credits_balance).toBeNull()
    const body = form([
      ['file', { file: 'a@a.test\n' }],
      ['dry_run', 'true'],
    ])
    const response = await send(body, { headers: { 'X-EV-Sandbox': 'true' } })
    expect(await response.json()).toMatchObject({ valid_emails: 1, credits_needed: 0 })
  })

  test('shows the credits that are needed and left, even if too few are left', async () => {
    const { seen, submit } = await services({ plan: 'free' })
    await submit(users(99))
    expect(await seen(LIST)).toMatchObject({ credits_needed: 3, credits_balance: 1 })
  })

  test('does not count against the ten lists an hour', async () => {
    const { seen, requestPreview, upload } = await services()
    for (let n = 0; n < 11; n++) await seen('a@a.test\n')
    for (let n = 0; n < 9; n++) expect((await upload('a@a.test\n')).status).toBe(200)
    expect(limitOf(await requestPreview('a@a.test\n')).remaining).toBeGreaterThan(0)
    expect((await upload('a@a.test\n')).status).toBe(200)
    expect((await upload('a@a.test\n')).status).toBe(429)
  })

  test('ignores an Idempotency-Key, which the list itself can use', async () => {
    const { send } = await services()
    const file = ['file', { file: 'a@a.test\n' }] as const
    const headers = { 'Idempotency-Key': 'one' }
    const requestPreview = () => send(form([['dry_run', 'true'], file]), { headers })
    expect(await (await requestPreview()).json()).toMatchObject({ dry_run: true })
    expect(await (await send(form([file]), { headers })).json()).toMatchObject({ status: 'queued' })
    expect(await (await requestPreview()).json()).toMatchObject({ dry_run: true })
  })
})

describe('a dry run is refused as the list would be', () => {
  test.each<[string, string, Record<string, string>, RegExp]>([
    ['that is empty', '', {}, /The list is empty/],
    ['with only a header', 'name,email\n', {}, /The list has no rows/],
    [
      'whose column does not exist',
      'a,b\n1,2\n',
      { column: 'mial' },
      /column "mial" is not a column/,
    ],
    ['with dry_run=maybe', 'a@a.test\n', { dry_run: 'maybe' }, /^"dry_run" is "maybe"; it must be/],
    [
      'with a name that is too long',
      'a@a.test\n',
      { name: 'x'.repeat(300) },
      /"name" has 300 characters; it must have at most 200/,
    ],
    [
      'with a row that is too long',
      `a@a.test\n"${'x'.repeat(1_100_000)}"\n`,
      {},
      /on line 2 is longer/,
    ],
  ])('%s', async (_, file, fields, error) => {
    const { requestPreview, left } = await services()
    const response = await requestPreview(file, fields)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(error) })
    expect(left()).toEqual([])
  })
})
