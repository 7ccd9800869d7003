import { describe, expect, test } from 'vitest'
import { LIST_COLUMNS, RESULT_COLUMNS } from '../../../src/engine/verdict/present-result.ts'
import { rowsOf } from '../../support/csv.ts'
import { toRecipients } from '../../support/engine.ts'
import { MIXED } from '../../support/job-rows.ts'
import { FORM, form } from '../../support/list-form.ts'
import { createHalfwayList, createSimulatedList, SANDBOX } from '../../support/list-service.ts'
import { createTestService } from '../../support/service.ts'

/** A service with a finished list in a file, whose results are simulated. */
async function createFileList(file: string | Uint8Array, name = 'list.csv') {
  const service = await createTestService({ works: true })
  const { job_id } = await service.json('/v1/verify/file', {
    body: form([['file', { file, name }]]),
    headers: { 'Content-Type': FORM, ...SANDBOX.headers },
  })
  const id = String(job_id)
  await service.finished(id)
  return { ...service, id, path: `/v1/jobs/${id}` }
}

/** Rows without their times, which differ by a few ms. */
const withoutTimes = (text: string) => text.replaceAll(/2026-06-01T12:00:00\.\d{3}Z/g, '<now>')

const HEADER = RESULT_COLUMNS.join(',')

describe('a download', () => {
  test('is RFC 4180 CSV with a row for each address in the order of the list, at both paths', async () => {
    const list = await createSimulatedList(['valid@a.example', 'invalid@a.example'])
    const { path, id, request } = list
    for (const url of [`${path}/download`, `/v1/verify/bulk/download/${id}`]) {
      const response = await request(url)
      expect(response.status).toBe(200)
      expect(response.headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
      expect(response.headers.get('Content-Disposition')).toBe(`attachment; filename="${id}.csv"`)
      expect(withoutTimes(await response.text())).toBe(
        [
          HEADER,
          'valid@a.example,true,true,low,accepted_email,false,deliverable,send,95,a.example,true,true,true,true,false,false,false,false,,,,,,<now>,valid@a.example,true,sandbox',
          'invalid@a.example,false,false,high,rejected_email,false,undeliverable,suppress,98,a.example,true,true,true,false,false,false,,false,,,,,,<now>,invalid@a.example,true,sandbox',
          '',
        ].join('\r\n'),
      )
    }
  })

  test('has duplicates and malformed rows in their positions', async () => {
    const texts = ['valid@a.example', 'no address', 'valid@A.Example', 'valid@a.example', '']
    const { path, request } = await createSimulatedList(texts)
    const rows = (await (await request(`${path}/download`)).text()).split('\r\n')
    expect(rows.slice(1, -1).map(row => row.split(',').slice(0, 2))).toEqual([
      ...[
        ['valid@a.example', 'true'],
        ['no address', 'false'],
        ['valid@A.Example', 'true'],
      ],
      ...[
        ['valid@a.example', 'true'],
        ['', ''],
      ],
    ])
  })

  test('is filtered by class', async () => {
    const { path, request } = await createSimulatedList(MIXED)
    const emails = async (filter: string) => {
      const text = await (await request(`${path}/download?filter=${filter}`)).text()
      return text
        .split('\r\n')
        .slice(1, -1)
        .map(row => row.split('@')[0])
    }
    expect(await emails('deliverable')).toEqual(['valid'])
    expect(await emails('risky,undeliverable')).toEqual(['risky', 'invalid', 'role'])
    expect(await emails('unknown')).toEqual(['timeout', 'error-server'])
    expect(await emails('')).toHaveLength(6)
  })

  test('of a class without rows is only a header', async () => {
    const { path, request } = await createSimulatedList(['valid@a.example'])
    const text = async (query: string) =>
      (await request(`${path}/download?filter=risky${query}`)).text()
    expect(await text('')).toBe(`${HEADER}\r\n`)
    expect(await text('&format=json')).toBe('[\n\n]\n')
    expect(await text('&format=ndjson')).toBe('')
  })

  test('guards cells that a spreadsheet would run, valid addresses too', async () => {
    const { path, request } = await createSimulatedList([
      { email: "=cmd|'/c calc'!A1@a.example", id: '=1' },
      { email: '+1@a.example', id: '-5' },
      { email: '=1+1', id: 'ok' },
      { email: '@x' },
    ])
    const cells = async (query: string) => {
      const text = await (await request(`${path}/download${query}`)).text()
      const rows = text.split('\r\n').slice(1, -1)
      return rows.map(row => [row.split(',')[0], row.split(',').at(-1)])
    }
    expect(await cells('')).toEqual([
      ...[
        ["'=cmd|'/c calc'!A1@a.example", "'=1"],
        ["'+1@a.example", '-5'],
        ["'=1+1", 'ok'],
        ["'@x", ''],
      ],
    ])
    expect(await cells('?raw=1')).toEqual([
      ...[
        ["=cmd|'/c calc'!A1@a.example", '=1'],
        ['+1@a.example', '-5'],
        ['=1+1', 'ok'],
        ['@x', ''],
      ],
    ])
  })

  test('has the columns and words of another service', async () => {
    const { path, request } = await createSimulatedList([
      { email: 'valid@a.example', id: 'a-1' },
      { email: 'timeout@a.example', id: 'b-2' },
    ])
    const response = await request(`${path}/download?vocabulary=zerobounce`)
    expect(rowsOf(await response.text())).toMatchObject([
      {
        'Email Address': 'valid@a.example',
        'ZB Status': 'valid',
        checked_by: 'sandbox',
        id: 'a-1',
      },
      { 'ZB Status': 'unknown', 'ZB Sub Status': 'timeout_exceeded', id: 'b-2' },
    ])
  })

  test('has the words of another service only in a table', async () => {
    const { path, request } = await createSimulatedList(['valid@a.example'])
    const query = 'vocabulary=kickbox&format=ndjson'
    const response = await request(`${path}/download?${query}`)
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('sets the columns of csv and xlsx')
    expect((await request(`${path}/download?vocabulary=other`)).status).toBe(400)
  })

  test('of rows with IDs has them in the last column', async () => {
    const { path, request } = await createSimulatedList([
      { email: 'valid@a.example', id: 'x-1' },
      { email: 'risky@a.example', id: 2 },
      { email: 'role@a.example' },
    ])
    const rows = (await (await request(`${path}/download`)).text()).split('\r\n')
    expect(rows[0]).toBe(`${HEADER},id`)
    expect(rows.slice(1, -1).map(row => row.split(',').at(-1))).toEqual(['x-1', '2', ''])
  })

  test('of a file has its columns first, in its dialect, followed by the results', async () => {
    const file = 'Name;E-Mail;Note\n"Ann; B";valid@a.example;=1\nBob;risky@a.example;\n'
    const { path, request } = await createFileList(file)
    const text = await (await request(`${path}/download`)).text()
    const [header, ann, bob, end] = text.split('\n')
    expect(header).toBe(['Name', 'E-Mail', 'Note', ...LIST_COLUMNS].join(';'))
    expect(ann).toMatch(
      /^"Ann; B";valid@a\.example;'=1;deliverable;send;valid@a\.example;true;true;low;/,
    )
    expect(bob).toMatch(
      /^Bob;risky@a\.example;;risky;send_with_care;risky@a\.example;true;false;medium;/,
    )
    expect(end).toBe('')
    const lines = await (await request(`${path}/download?format=ndjson`)).text()
    expect(JSON.parse(lines.split('\n')[0] ?? '')).toMatchObject({
      row: 1,
      email: 'valid@a.example',
      input: { Name: 'Ann; B', 'E-Mail': 'valid@a.example', Note: '=1' },
    })
  })

  test('is an array of results in JSON, and one result per line in NDJSON', async () => {
    const [first = '', ...others] = MIXED
    const { path, id, request } = await createSimulatedList([
      { email: first, id: 'a-1' },
      ...others.map(email => ({ email })),
    ])
    const json = await request(`${path}/download?format=json`)
    expect(json.headers.get('Content-Type')).toBe('application/json')
    expect(json.headers.get('Content-Disposition')).toBe(`attachment; filename="${id}.json"`)
    const rows = (await json.json()) as object[]
    expect(rows).toHaveLength(6)
    expect(rows[0]).toMatchObject({
      row: 1,
      id: 'a-1',
      email: 'valid@a.example',
      valid: true,
      class: 'deliverable',
      details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
      flags: { is_role: false },
      checked_at: expect.stringMatching(/^2026-06-01T12:00:00/),
    })
    const ndjson = await request(`${path}/download?format=ndjson`)
    expect(ndjson.headers.get('Content-Type')).toBe('application/x-ndjson')
    const lines = (await ndjson.text()).split('\n')
    expect(lines.at(-1)).toBe('')
    expect(lines.slice(0, -1).map(line => JSON.parse(line))).toEqual(rows)
  })

  test('has the mail server and its reply for each row', async () => {
    const script = toRecipients(to =>
      to.startsWith('ann') ? '250 2.1.5 Ok' : '550 5.1.1 No such user, "sorry"',
    )
    const service = await createTestService({ works: true, engine: { script } })
    const id = await service.submit(['ann@a.test', 'zoe@a.test', 'ann@gone.test', 'nonsense'])
    await service.finished(id)
    const path = `/v1/jobs/${id}/download`
    const records = rowsOf(await (await service.request(path)).text())
    const columns = ['email', 'class', 'reason', 'smtp_code', 'smtp_text', 'mx_host', 'operator']
    expect(records.map(record => columns.map(name => record[name]))).toEqual([
      ['ann@a.test', 'deliverable', 'accepted_email', '250', 'Ok', 'mx.a.test', 'a.test'],
      [
        ...['zoe@a.test', 'undeliverable', 'rejected_email', '550'],
        ...['No such user, "sorry"', 'mx.a.test', 'a.test'],
      ],
      ['ann@gone.test', 'undeliverable', 'invalid_domain', '', '', '', ''],
      ['nonsense', 'undeliverable', 'invalid_email', '', '', '', ''],
    ])
    for (const { checked_at } of records) expect(checked_at).toMatch(/^2026-06-01T12:00:\d\d\./)
    const json = await (await service.request(`${path}?format=json`)).json()
    expect(json).toMatchObject([
      {
        email: 'ann@a.test',
        class: 'deliverable',
        reason: 'accepted_email',
        smtp_code: 250,
        smtp_text: 'Ok',
        mx_host: 'mx.a.test',
        operator: 'a.test',
        checked_at: expect.stringMatching(/^2026-06-01T12:00:/),
      },
      { smtp_code: 550, smtp_text: 'No such user, "sorry"' },
      { smtp_code: null, smtp_text: null, mx_host: null, operator: null },
      { smtp_code: null, smtp_text: null, mx_host: null, operator: null },
    ])
  })

  test('keeps a row for an erased address, with only its class', async () => {
    const { path, database, request } = await createSimulatedList([
      ...['valid@a.example', 'invalid@a.example'],
    ])
    await database.db
      .updateTable('item')
      .set({ result: 'null', text: '' })
      .where('position', '=', 1)
      .execute()
    const [erased, kept] = rowsOf(await (await request(`${path}/download`)).text())
    const known = Object.entries(erased ?? {}).filter(([, value]) => value !== '')
    expect(Object.fromEntries(known)).toEqual({
      valid: 'true',
      deliverable: 'true',
      risk_level: 'low',
      reason: 'accepted_email',
      cached: 'false',
      class: 'deliverable',
      action: 'send',
      confidence: '0',
      syntax_valid: 'true',
      domain_exists: 'true',
      mx_record: 'true',
      smtp_valid: 'true',
    })
    expect(kept).toMatchObject({ email: 'invalid@a.example', valid: 'false' })
    const json = await request(`${path}/download?format=json`)
    expect(((await json.json()) as object[])[0]).toMatchObject({ row: 1, email: '', erased: true })
  })

  test('with deduplicate=canonical has each mailbox once', async () => {
    const texts = ['valid.a@gmail.com', 'valida+x@gmail.com', 'valid.a@gmail.com', 'valid.a@b.test']
    const { path, request } = await createSimulatedList(texts)
    const rows = async (deduplicate: string) => {
      const url = `${path}/download?format=json&deduplicate=${deduplicate}`
      const body = (await (await request(url)).json()) as { row: number; canonical: string }[]
      return body.map(({ row, canonical }) => `${row} ${canonical}`)
    }
    expect(await rows('canonical')).toEqual(['1 valida@gmail.com', '4 valid.a@b.test'])
    expect(await rows('address')).toHaveLength(3)
    expect((await request(`${path}/download?deduplicate=mailbox`)).status).toBe(400)
  })

  test('of a list in another encoding than UTF-8 has a byte order mark', async () => {
    const file = Buffer.from('Name;E-Mail\nFran\xe7ois;valid@a.example\n', 'latin1')
    const { path, request } = await createFileList(file)
    const bytes = Buffer.from(await (await request(`${path}/download`)).arrayBuffer())
    expect(bytes.toString()).toMatch(/^\uFEFFName;E-Mail;ev_class;.*\nFrançois;/)
  })

  test('with deduplicate=true has each address once, whether or not the list was deduplicated', async () => {
    const emails = [
      'valid@a.example',
      'risky@a.example',
      'valid@A.example',
      'x',
      'valid@a.example',
      'x',
    ]
    for (const deduplicate of [true, false]) {
      const { path, request } = await createSimulatedList(emails, { deduplicate })
      const rowsIn = async (query: string) =>
        (await (await request(`${path}/download?format=ndjson${query}`)).text())
          .split('\n')
          .slice(0, -1)
          .map(line => JSON.parse(line).row)
      expect(await rowsIn('')).toEqual([1, 2, 3, 4, 5, 6])
      expect(await rowsIn('&deduplicate=true')).toEqual([1, 2, 4])
      expect(await rowsIn('&deduplicate=true&filter=undeliverable')).toEqual([4])
    }
  })

  test('is named after the list or its file, and the classes', async () => {
    const list = await createSimulatedList(MIXED, { name: 'Käufer.csv' })
    const nameOf = async ({ path, request }: Pick<typeof list, 'path' | 'request'>, query = '') =>
      (await request(`${path}/download${query}`)).headers.get('Content-Disposition')
    expect(await nameOf(list, '?filter=deliverable&format=json')).toBe(
      `attachment; filename="K_ufer-deliverable.json"; filename*=UTF-8''K%C3%A4ufer-deliverable.json`,
    )
    const all = '?filter=unknown,deliverable,risky,undeliverable'
    expect(await nameOf(list, all)).toMatch(/K%C3%A4ufer-verified\.csv$/)
    const file = await createFileList('valid@a.example\n', 'customers.csv')
    expect(await nameOf(file)).toBe('attachment; filename="customers-verified.csv"')
  })

  test('before completion is refused without partial=true', async () => {
    const { path, request } = await createHalfwayList()
    const refused = await request(`${path}/download`)
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({ success: false, code: 'job_not_ready' })
    const response = await request(`${path}/download?partial=true`)
    expect(response.headers.get('Content-Disposition')).toContain('-partial.csv"')
    const partial = await response.text()
    expect(partial.split('\r\n').slice(1, -1)).toHaveLength(2)
  })

  test.each(['format=xml', 'filter=good', 'filter=deliverable,', 'raw=yes'])(
    'rejects %s',
    async query => {
      const { path, request } = await createSimulatedList(MIXED)
      const response = await request(`${path}/download?${query}`)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'invalid_request' })
    },
  )

  test('of thousands of rows has each once, and is produced as it is read', async () => {
    const texts = Array.from({ length: 3_001 }, (_, n) => `person${n}@a.example`)
    const { path, request } = await createSimulatedList(texts)
    const text = await (await request(`${path}/download`)).text()
    const emails = text
      .split('\r\n')
      .slice(1, -1)
      .map(row => row.split(',')[0])
    expect(emails).toEqual(texts)
  })

  test.each(['csv', 'xlsx', 'json', 'ndjson'])(
    'as %s of a job that is deleted meanwhile is aborted, not completed',
    async format => {
      const texts = Array.from({ length: 3_000 }, (_, n) => `person${n}@a.example`)
      const { path, request, lines } = await createSimulatedList(texts)
      const { body } = await request(`${path}/download?format=${format}`)
      const reader = (body as ReadableStream<Uint8Array>).getReader()
      await reader.read()
      await request(path, { method: 'DELETE' })
      const rest = (async () => {
        while (!(await reader.read()).done);
      })()
      await expect(rest).rejects.toThrow(/changed while its results were read/)
      expect(lines.at(-1)).toMatchObject({ level: 'warn', message: 'response aborted' })
    },
  )

  test('that is not read is dropped after a minute, one that is read slowly is not', async () => {
    const texts = Array.from({ length: 3_000 }, (_, n) => `person${n}@a.example`)
    const { path, request, clock } = await createSimulatedList(texts)
    const { body } = await request(`${path}/download`)
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    for (let n = 0; n < 5; n++) {
      expect((await reader.read()).done).toBe(false)
      await clock.advance(59_000)
    }
    await clock.advance(2_000)
    await expect(reader.read()).rejects.toThrow(/the client stopped reading/)
  })

  test('that its reader cancels leaves nothing behind', async () => {
    const { path, request, clock, lines } = await createSimulatedList(
      Array.from({ length: 3_000 }, (_, n) => `person${n}@a.example`),
    )
    await clock.advance(60_000)
    const { pending } = clock
    const { body } = await request(`${path}/download`)
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await reader.cancel()
    await clock.advance(120_000)
    expect(clock.pending).toBe(pending)
    expect(lines.filter(line => line.message === 'response aborted')).toEqual([])
  })
})

describe('a download is produced in pieces', () => {
  /** Reads a response, and returns the size of its pieces and its text. */
  async function readPieces(response: Response) {
    const sizes: number[] = []
    let text = ''
    for await (const piece of response.body ?? []) {
      sizes.push(piece.byteLength)
      text += Buffer.from(piece).toString()
    }
    return { largest: Math.max(...sizes), text }
  }

  /** Writes a file with a header and rows of plain cells. */
  const write = (header: readonly string[], rows: readonly (readonly string[])[]) =>
    [header, ...rows].map(cells => `${cells.join(',')}\n`).join('')

  const KIB = 1024

  test.each(['csv', 'json', 'ndjson'])(
    'of at most 64 KiB and a row, if a header has thousands of columns: %s',
    async format => {
      const header = ['email', ...Array(2_000).fill('')]
      const rows = Array.from({ length: 600 }, (_, n) => [`valid${n}@a.example`])
      const { path, request } = await createFileList(write(header, rows))
      const found = await readPieces(await request(`${path}/download?format=${format}`))
      expect(found.largest).toBeLessThan(100 * KIB)
      const order = [...found.text.matchAll(/valid(\d+)@a\.example,true|"email":"valid(\d+)@/g)]
      const numbers = order.map(([, csv, json]) => Number(csv ?? json))
      expect(numbers.filter((n, at) => n !== numbers[at - 1])).toEqual(rows.map((_, n) => n))
    },
  )

  test('of a few long rows, also after many short ones', async () => {
    const long = 'x'.repeat(500 * KIB)
    const rows = Array.from({ length: 700 }, (_, n) => [
      `valid${n}@a.example`,
      n >= 500 && n < 506 ? long : '',
    ])
    const { path, request } = await createFileList(write(['email', 'note'], rows))
    const found = await readPieces(await request(`${path}/download?filter=deliverable`))
    expect(found.largest).toBeLessThan(600 * KIB)
    expect(found.text.split('\n').filter(line => line.startsWith('valid'))).toHaveLength(700)
  })

  test('and at most two at a time for an account that find repeated rows of a long list', async () => {
    const { path, database, request } = await createSimulatedList(['valid@a.example'])
    await database.db.updateTable('job').set({ total: 100_001 }).execute()
    const url = `${path}/download?deduplicate=true`
    const open = await Promise.all([request(url), request(url)])
    const refused = await request(url)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      error:
        '2 large downloads with "deduplicate" are in progress for this account. Wait until one has finished.',
    })
    expect((await request(`${path}/download`)).status).toBe(200)
    await open[0]?.body?.cancel()
    expect((await request(url)).status).toBe(200)
  })

  test('and at most 20 at a time for an account', async () => {
    const list = await createSimulatedList(['valid@a.example'])
    const { path, request, addAccount, addKey, submit, finished } = list
    await addAccount('acc_2')
    const open = await Promise.all(Array.from({ length: 20 }, () => request(`${path}/download`)))
    const refused = await request(`${path}/download`)
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '5'])
    expect((await request(`${path}/download`, { method: 'HEAD' })).status).toBe(200)
    const key = await addKey({ accountId: 'acc_2' })
    const other = await submit(['valid@a.example'], { key, ...SANDBOX })
    await finished(other, key)
    expect((await request(`/v1/jobs/${other}/download`, { key })).status).toBe(200)
    await open[0]?.text()
    await open[1]?.body?.cancel()
    expect((await request(`${path}/download`)).status).toBe(200)
    expect((await request(`${path}/download`)).status).toBe(200)
    expect((await request(`${path}/download`)).status).toBe(429)
  })
})
