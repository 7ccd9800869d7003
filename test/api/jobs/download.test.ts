import { describe, expect, test } from 'vitest'
import { detectDialect } from '../../../src/csv/csv.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { rowsOf } from '../../support/csv.ts'
import { toRecipients } from '../../support/engine.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { finishJob } from '../../support/late-worker.ts'
import { createTestService } from '../../support/service.ts'

const HEADER =
  'email,valid,deliverable,risk_level,reason,cached,class,action,confidence,provider,syntax_valid,domain_exists,mx_record,smtp_valid,is_disposable,is_role,is_catch_all,is_free,did_you_mean,operator,mx_host,smtp_code,smtp_text,checked_at,canonical,simulated,checked_by'

describe('a download', () => {
  test.each(['/v1/jobs/job_a/download', '/v1/verify/bulk/download/job_a'])(
    'by %s is RFC 4180 CSV with a row for each address in the order of the list',
    async path => {
      const { database, request } = await createTestService()
      await seedJob(database, { texts: ['valid@a.example', 'invalid@a.example'] })
      const response = await request(path)
      expect(response.status).toBe(200)
      expect(response.headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
      expect(response.headers.get('Content-Disposition')).toBe('attachment; filename="job_a.csv"')
      expect(await response.text()).toBe(
        [
          HEADER,
          'valid@a.example,true,true,low,accepted_email,false,deliverable,send,95,a.example,true,true,true,true,false,false,false,false,,,,,,2026-06-01T12:00:00.000Z,valid@a.example,true,sandbox',
          'invalid@a.example,false,false,high,rejected_email,false,undeliverable,suppress,98,a.example,true,true,true,false,false,false,,false,,,,,,2026-06-01T12:00:00.000Z,invalid@a.example,true,sandbox',
          '',
        ].join('\r\n'),
      )
    },
  )

  test('has duplicates and malformed rows in their positions', async () => {
    const { database, request } = await createTestService()
    const texts = ['valid@a.example', 'no address', 'valid@A.Example', 'valid@a.example', '']
    await seedJob(database, { texts })
    const rows = (await (await request('/v1/jobs/job_a/download')).text()).split('\r\n')
    expect(rows.slice(1, -1).map(row => row.split(',').slice(0, 2))).toEqual([
      ...[
        ['valid@a.example', 'true'],
        ['no address', 'false'],
        ['valid@A.Example', 'true'],
      ],
      ...[
        ['valid@a.example', 'true'],
        ['', 'false'],
      ],
    ])
  })

  test('is filtered by class', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const emails = async (filter: string) => {
      const text = await (await request(`/v1/jobs/job_a/download?filter=${filter}`)).text()
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
    const { database, request } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example'] })
    const text = async (query: string) =>
      (await request(`/v1/jobs/job_a/download?filter=risky${query}`)).text()
    expect(await text('')).toBe(`${HEADER}\r\n`)
    expect(await text('&format=json')).toBe('[\n\n]\n')
    expect(await text('&format=ndjson')).toBe('')
  })

  test('guards cells that a spreadsheet would run, valid addresses too', async () => {
    const { database, request } = await createTestService()
    const texts = ["=cmd|'/c calc'!A1@a.example", '+1@a.example', '=1+1', '@x']
    await seedJob(database, { texts, cells: ['=1', '-5', 'ok', null], source: { ids: true } })
    const cells = async (query: string) => {
      const text = await (await request(`/v1/jobs/job_a/download${query}`)).text()
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
    const { database, request } = await createTestService()
    const texts = ['valid@a.example', 'timeout@a.example']
    await seedJob(database, { texts, cells: ['a-1', 'b-2'], source: { ids: true } })
    const response = await request('/v1/jobs/job_a/download?vocabulary=zerobounce')
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
    const { database, request } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example'] })
    const query = 'vocabulary=kickbox&format=ndjson'
    const response = await request(`/v1/jobs/job_a/download?${query}`)
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('sets the columns of csv and xlsx')
    expect((await request('/v1/jobs/job_a/download?vocabulary=other')).status).toBe(400)
  })

  test('of rows with IDs has them in the last column', async () => {
    const { database, request } = await createTestService()
    const texts = ['valid@a.example', 'risky@a.example']
    await seedJob(database, { texts, cells: [null, 'b-2'], source: { ids: true } })
    const rows = (await (await request('/v1/jobs/job_a/download')).text()).split('\r\n')
    expect(rows[0]).toBe(`${HEADER},id`)
    expect(rows.slice(1, -1).map(row => row.split(',').at(-1))).toEqual(['', 'b-2'])
  })

  test('has the rows as they were submitted: ids of a batch, cells of a file', async () => {
    const { database, json, request } = await createTestService()
    const items = [
      { email: 'valid@a.example', id: 'x-1' },
      { email: 'risky@a.example', id: 2 },
      { email: 'role@a.example' },
    ]
    const batch = (await json('/v1/verify/batch', { body: { items } })) as { job_id: string }
    await giveResults(database, batch.job_id, 3)
    const rows = await (await request(`/v1/jobs/${batch.job_id}/download`)).text()
    const ends = rows.split('\r\n').map(row => row.split(',').at(-1))
    expect(ends.slice(0, -1)).toEqual(['id', 'x-1', '2', ''])
    const form = new FormData()
    form.set(
      'file',
      new Blob(['Name,E-Mail\nAnn,valid@a.example\n"B, C",risky@a.example\n']),
      'l.csv',
    )
    const whole = new Response(form)
    const file = (await json('/v1/verify/file', {
      body: new Uint8Array(await whole.arrayBuffer()),
      headers: { 'Content-Type': whole.headers.get('Content-Type') ?? '' },
    })) as { job_id: string }
    await giveResults(database, file.job_id, 2)
    const text = await (await request(`/v1/jobs/${file.job_id}/download`)).text()
    expect(text).toMatch(
      /^Name,E-Mail,ev_class,.*\nAnn,valid@a\.example,deliverable,send,valid@.*\n"B, C",risky@/,
    )
  })

  test('of a file has its columns first, in its dialect, followed by the results', async () => {
    const { database, request } = await createTestService()
    const file = 'Name;E-Mail;Note\n"Ann; B";valid@a.example;=1\nBob;risky@a.example;\n'
    const dialect = detectDialect(Buffer.from(file))
    const cells = [
      ['Ann; B', 'valid@a.example', '=1'],
      ['Bob', 'risky@a.example', ''],
    ]
    const texts = cells.map(row => row[1] ?? '')
    await seedJob(database, { texts, cells, type: 'file', source: { dialect } })
    const text = await (await request('/v1/jobs/job_a/download')).text()
    const [header, ann, bob, end] = text.split('\n')
    const names = HEADER.split(',').filter(name => name !== 'class' && name !== 'action')
    const ours = ['class', 'action', ...names].map(name => `ev_${name}`)
    expect(header).toBe(`Name;E-Mail;Note;${ours.join(';')}`)
    expect(ann).toMatch(
      /^"Ann; B";valid@a\.example;'=1;deliverable;send;valid@a\.example;true;true;low;/,
    )
    expect(bob).toMatch(
      /^Bob;risky@a\.example;;risky;send_with_care;risky@a\.example;true;false;medium;/,
    )
    expect(end).toBe('')
    const lines = await (await request('/v1/jobs/job_a/download?format=ndjson')).text()
    expect(JSON.parse(lines.split('\n')[0] ?? '')).toMatchObject({
      row: 1,
      email: 'valid@a.example',
      input: { Name: 'Ann; B', 'E-Mail': 'valid@a.example', Note: '=1' },
    })
  })

  test('is an array of results in JSON, and one result per line in NDJSON', async () => {
    const { database, request } = await createTestService()
    const cells = ['a-1', null, null, null, null, null]
    await seedJob(database, { texts: MIXED, cells })
    const json = await request('/v1/jobs/job_a/download?format=json')
    expect(json.headers.get('Content-Type')).toBe('application/json')
    expect(json.headers.get('Content-Disposition')).toBe('attachment; filename="job_a.json"')
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
      checked_at: '2026-06-01T12:00:00.000Z',
    })
    const ndjson = await request('/v1/jobs/job_a/download?format=ndjson')
    expect(ndjson.headers.get('Content-Type')).toBe('application/x-ndjson')
    const lines = (await ndjson.text()).split('\n')
    expect(lines.at(-1)).toBe('')
    expect(lines.slice(0, -1).map(line => JSON.parse(line))).toEqual(rows)
  })

  test('has the mail server and its reply for each row', async () => {
    const script = toRecipients(to =>
      to.startsWith('ann') ? '250 2.1.5 Ok' : '550 5.1.1 No such user, "sorry"',
    )
    const fixture = await createTestService({ engine: { script } })
    const emails = ['ann@a.test', 'zoe@a.test', 'ann@gone.test', 'nonsense']
    const { job_id } = await fixture.json('/v1/verify/batch', { body: { emails } })
    await finishJob(fixture, String(job_id))
    const path = `/v1/jobs/${job_id}/download`
    const records = rowsOf(await (await fixture.request(path)).text())
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
    const json = await (await fixture.request(`${path}?format=json`)).json()
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
    const { database, request } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example', 'invalid@a.example'] })
    await database.db
      .updateTable('item')
      .set({ result: 'null', text: '' })
      .where('position', '=', 1)
      .execute()
    const rows = (await (await request('/v1/jobs/job_a/download')).text()).split('\r\n')
    expect(rows[1]).toBe(
      ',true,true,low,accepted_email,false,deliverable,send,0,,true,true,true,true,,,,,,,,,,,,,',
    )
    expect(rows[2]).toMatch(/^invalid@a\.example,false/)
    const json = await request('/v1/jobs/job_a/download?format=json')
    expect(((await json.json()) as object[])[0]).toMatchObject({ row: 1, email: '', erased: true })
  })

  test('with deduplicate=canonical has each mailbox once', async () => {
    const { database, request } = await createTestService()
    const texts = ['valid.a@gmail.com', 'valida+x@gmail.com', 'valid.a@gmail.com', 'valid.a@b.test']
    await seedJob(database, { texts })
    const rows = async (deduplicate: string) => {
      const path = `/v1/jobs/job_a/download?format=json&deduplicate=${deduplicate}`
      const body = (await (await request(path)).json()) as { row: number; canonical: string }[]
      return body.map(({ row, canonical }) => `${row} ${canonical}`)
    }
    expect(await rows('canonical')).toEqual(['1 valida@gmail.com', '4 valid.a@b.test'])
    expect(await rows('address')).toHaveLength(3)
    expect((await request('/v1/jobs/job_a/download?deduplicate=mailbox')).status).toBe(400)
  })

  test('of a list in another encoding than UTF-8 has a byte order mark', async () => {
    const { database, request } = await createTestService()
    const file = Buffer.from('Name;E-Mail\nFran\xe7ois;valid@a.example\n', 'latin1')
    const dialect = detectDialect(file)
    const cells = [['François', 'valid@a.example']]
    await seedJob(database, {
      texts: ['valid@a.example'],
      cells,
      type: 'file',
      source: { dialect },
    })
    const bytes = Buffer.from(await (await request('/v1/jobs/job_a/download')).arrayBuffer())
    expect(dialect.encoding).toBe('windows-1252')
    expect(bytes.toString()).toMatch(/^\uFEFFName;E-Mail;ev_class;.*\nFrançois;/)
  })

  test('with deduplicate=true has each address once, whether or not the list was deduplicated', async () => {
    const { database, json, request } = await createTestService()
    const emails = [
      'valid@a.example',
      'risky@a.example',
      'valid@A.example',
      'x',
      'valid@a.example',
      'x',
    ]
    for (const deduplicate of [true, false]) {
      const { job_id } = await json('/v1/verify/batch', { body: { emails, deduplicate } })
      await giveResults(database, String(job_id), 6)
      const path = `/v1/jobs/${job_id}/download?format=ndjson`
      const rowsIn = async (query: string) =>
        (await (await request(`${path}${query}`)).text())
          .split('\n')
          .slice(0, -1)
          .map(line => JSON.parse(line).row)
      expect(await rowsIn('')).toEqual([1, 2, 3, 4, 5, 6])
      expect(await rowsIn('&deduplicate=true')).toEqual([1, 2, 4])
      expect(await rowsIn('&deduplicate=true&filter=undeliverable')).toEqual([4])
    }
  })

  test('is named after the list or its file, and the classes', async () => {
    const { database, json, request } = await createTestService()
    const nameOf = async (id: string, query = '') =>
      (await request(`/v1/jobs/${id}/download${query}`)).headers.get('Content-Disposition')
    await seedJob(database, { texts: MIXED, name: 'Käufer.csv' })
    expect(await nameOf('job_a', '?filter=deliverable&format=json')).toBe(
      `attachment; filename="K_ufer-deliverable.json"; filename*=UTF-8''K%C3%A4ufer-deliverable.json`,
    )
    const all = '?filter=unknown,deliverable,risky,undeliverable'
    expect(await nameOf('job_a', all)).toMatch(/K%C3%A4ufer-verified\.csv$/)
    const form = new FormData()
    form.set('file', new Blob(['valid@a.example\n']), 'customers.csv')
    const whole = new Response(form)
    const { job_id } = await json('/v1/verify/file', {
      body: new Uint8Array(await whole.arrayBuffer()),
      headers: { 'Content-Type': whole.headers.get('Content-Type') ?? '' },
    })
    await giveResults(database, String(job_id), 1)
    expect(await nameOf(String(job_id))).toBe('attachment; filename="customers-verified.csv"')
  })

  test('before completion is refused without partial=true', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const refused = await request('/v1/jobs/job_a/download')
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({ success: false, code: 'job_not_ready' })
    const response = await request('/v1/jobs/job_a/download?partial=true')
    expect(response.headers.get('Content-Disposition')).toContain('-partial.csv"')
    const partial = await response.text()
    expect(partial.split('\r\n').slice(1, -1)).toHaveLength(2)
  })

  test.each(['format=xml', 'filter=good', 'filter=deliverable,', 'raw=yes'])(
    'rejects %s',
    async query => {
      const { database, request } = await createTestService()
      await seedJob(database, { texts: MIXED })
      const response = await request(`/v1/jobs/job_a/download?${query}`)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'invalid_request' })
    },
  )

  test('of thousands of rows has each once, and is produced as it is read', async () => {
    const { database, request } = await createTestService()
    const texts = Array.from({ length: 3_001 }, (_, n) => `person${n}@a.example`)
    await seedJob(database, { texts })
    const text = await (await request('/v1/jobs/job_a/download')).text()
    const emails = text
      .split('\r\n')
      .slice(1, -1)
      .map(row => row.split(',')[0])
    expect(emails).toEqual(texts)
  })

  test('of a job that is deleted meanwhile is aborted, not completed', async () => {
    const { database, request, lines } = await createTestService()
    const texts = Array.from({ length: 3_000 }, (_, n) => `person${n}@a.example`)
    await seedJob(database, { texts })
    const { body } = await request('/v1/jobs/job_a/download')
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await deleteJob(database, 'job_a')
    const rest = (async () => {
      while (!(await reader.read()).done);
    })()
    await expect(rest).rejects.toThrow(/changed while its results were read/)
    expect(lines.at(-1)).toMatchObject({ level: 'warn', message: 'response aborted' })
  })

  test('that is not read is dropped after a minute, one that is read slowly is not', async () => {
    const { database, request, clock } = await createTestService()
    const texts = Array.from({ length: 3_000 }, (_, n) => `person${n}@a.example`)
    await seedJob(database, { texts })
    const { body } = await request('/v1/jobs/job_a/download')
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    for (let n = 0; n < 5; n++) {
      expect((await reader.read()).done).toBe(false)
      await clock.advance(59_000)
    }
    await clock.advance(2_000)
    await expect(reader.read()).rejects.toThrow(/the client stopped reading/)
  })

  test('that its reader cancels leaves nothing behind', async () => {
    const { database, request, clock, lines } = await createTestService()
    await seedJob(database, {
      texts: Array.from({ length: 3_000 }, (_, n) => `person${n}@a.example`),
    })
    const { body } = await request('/v1/jobs/job_a/download')
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await reader.cancel()
    await clock.advance(120_000)
    expect(clock.pending).toBe(0)
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

  async function seedFile({ header, rows }: { header: string[]; rows: string[][] }) {
    const { database, request } = await createTestService()
    const dialect = detectDialect(Buffer.from(`${header.join(',')}\na@a.test\n`), { column: 1 })
    const texts = rows.map(([text = '']) => text)
    await seedJob(database, { texts, cells: rows, type: 'file', source: { dialect } })
    return request
  }

  const KIB = 1024

  test.each(['csv', 'json', 'ndjson'])(
    'of at most 64 KiB and a row, if a header has thousands of columns: %s',
    async format => {
      const header = ['email', ...Array(2_000).fill('')]
      const rows = Array.from({ length: 600 }, (_, n) => [`valid${n}@a.example`])
      const request = await seedFile({ header, rows })
      const found = await readPieces(await request(`/v1/jobs/job_a/download?format=${format}`))
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
      n >= 500 && n < 520 ? long : '',
    ])
    const request = await seedFile({ header: ['email', 'note'], rows })
    const found = await readPieces(await request('/v1/jobs/job_a/download?filter=deliverable'))
    expect(found.largest).toBeLessThan(600 * KIB)
    expect(found.text.split('\n').filter(line => line.startsWith('valid'))).toHaveLength(700)
  })

  test('and at most two at a time for an account that find repeated rows of a long list', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example'] })
    await database.db.updateTable('job').set({ total: 100_001 }).execute()
    const path = '/v1/jobs/job_a/download?deduplicate=true'
    const open = await Promise.all([request(path), request(path)])
    const refused = await request(path)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      error:
        '2 large downloads with "deduplicate" are in progress for this account. Wait until one has finished.',
    })
    expect((await request('/v1/jobs/job_a/download')).status).toBe(200)
    await open[0]?.body?.cancel()
    expect((await request(path)).status).toBe(200)
  })

  test('and at most 20 at a time for an account', async () => {
    const { database, request, addAccount, addKey } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example'] })
    await addAccount('acc_2')
    const open = await Promise.all(
      Array.from({ length: 20 }, () => request('/v1/jobs/job_a/download')),
    )
    const refused = await request('/v1/jobs/job_a/download')
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '5'])
    expect((await request('/v1/jobs/job_a/download', { method: 'HEAD' })).status).toBe(200)
    await seedJob(database, { id: 'job_b', texts: ['valid@a.example'], accountId: 'acc_2' })
    const key = await addKey({ accountId: 'acc_2' })
    expect((await request('/v1/jobs/job_b/download', { key })).status).toBe(200)
    await open[0]?.text()
    await open[1]?.body?.cancel()
    expect((await request('/v1/jobs/job_a/download')).status).toBe(200)
    expect((await request('/v1/jobs/job_a/download')).status).toBe(200)
    expect((await request('/v1/jobs/job_a/download')).status).toBe(429)
  })
})
