import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { ACCOUNT_DOWNLOADS_MAX, DOWNLOADS_MAX } from '../../../src/api/lists/url-download.ts'
import type { Download } from '../../../src/outbound/download.ts'
import { testAuthority } from '../../support/certificate.ts'
import type { ReceiverOptions } from '../../support/http-receiver.ts'
import { openReceiver } from '../../support/https-post.ts'
import { createUploadService } from '../../support/list-form.ts'
import { openS3, S3_KEYS } from '../../support/s3-server.ts'
import type { RequestOptions } from '../../support/service.ts'
import { waitUntil } from '../../support/wait.ts'
import { workbookOf } from '../../support/workbook.ts'

const LIST = 'name,email\nAnn,ann@a.test\nBob,bob@a.test\nX,nonsense\n'
const S3 = {
  region: 'us-east-1',
  access_key_id: S3_KEYS.accessKeyId,
  secret_access_key: S3_KEYS.secretAccessKey,
}
const SECRETS = /s3cret|wJalr|AKIA/

type Body = Readonly<Record<string, unknown>>

/** A service that may download from loopback, and functions that submit lists at URLs. */
async function createUrlService(options: Parameters<typeof createUploadService>[0] = {}) {
  const zone = {
    'hook.example': { A: ['127.0.0.1'] },
    's3.example': { A: ['127.0.0.1'] },
    'inside.example': { A: ['10.0.0.7'] },
  }
  const fixture = await createUploadService({
    ...options,
    engine: { zone },
    downloads: { allowRanges: ['127.0.0.1'], ca: testAuthority().cert },
  })
  const submit = (body: Body, o: RequestOptions = {}) =>
    fixture.request('/v1/verify/url', { body, ...o })
  /** All that the database has of the request. */
  const stored = async () => {
    const { db } = fixture.database
    const tables = await db.introspection.getTables()
    expect(tables.length).toBeGreaterThan(20)
    const all = await Promise.all(
      tables.map(({ name }) =>
        db
          .selectFrom(name as 'job')
          .selectAll()
          .execute(),
      ),
    )
    return JSON.stringify(all)
  }
  return { ...fixture, submit, stored }
}

async function serve(answer: ReceiverOptions['answer']) {
  const receiver = await openReceiver(answer === undefined ? {} : { answer })
  return { receiver, url: `https://hook.example:${receiver.port}/in/march.csv?sig=s3cret` }
}

const csv = (body: string | Buffer) => ({
  body,
  headers: { 'content-length': String(Buffer.byteLength(body)) },
})

describe('POST /v1/verify/url', () => {
  test('creates the same job as an upload of the file', async () => {
    const { submit, upload, job, rows, left, worker } = await createUrlService()
    const { url } = await serve(csv(LIST))
    const response = await submit({ url })
    const body = (await response.json()) as Record<string, unknown>
    const same = { job_id: 0, message: 0, status_url: 0, download_url: 0, estimated_time: 0 }
    expect(await job()).toMatchObject({ id: body.job_id, type: 'file', state: 'queued' })
    expect((await rows()).map(({ cells }) => JSON.parse(cells ?? ''))).toEqual([
      ['Ann', 'ann@a.test'],
      ['Bob', 'bob@a.test'],
      ['X', 'nonsense'],
    ])
    const uploaded = (await (await upload(LIST)).json()) as Record<string, unknown>
    expect({ ...body, ...same }).toEqual({ ...uploaded, ...same })
    expect([worker.taken.length, left()]).toEqual([2, []])
  })

  test('names the job after the end of the path, and stores nothing else of the URL', async () => {
    const { submit, job, stored, lines } = await createUrlService()
    const { url } = await serve(csv(LIST))
    const headers = { 'Idempotency-Key': 'one' }
    expect((await submit({ url }, { headers })).status).toBe(200)
    expect(await job()).toMatchObject({ name: 'march.csv' })
    expect(await stored()).not.toMatch(/s3cret|hook\.example|\/in\//)
    expect(JSON.stringify(lines)).not.toMatch(SECRETS)
  })

  test('takes all options of a file', async () => {
    const { submit, job, json } = await createUrlService()
    const { url } = await serve(csv('id;mail;work\n1;a@a.test;b@b.test\n2;a@a.test;b@b.test\n'))
    const options = {
      column: 'work',
      header: true,
      encoding: 'windows-1252',
      name: 'March',
      deduplicate: false,
      check_smtp: false,
      force_refresh: true,
      metadata: { a: 'b' },
      webhook_url: 'https://8.8.8.8/hook',
    }
    const body = (await (await submit({ url, ...options })).json()) as object
    expect(body).toMatchObject({ column: 'work', encoding: 'windows-1252', duplicates: 0, rows: 2 })
    expect(body).toHaveProperty('webhook_secret')
    const created = await job()
    expect(created).toMatchObject({ name: 'March', total: 2 })
    expect(await json(`/v1/jobs/${created?.id}`)).toMatchObject({ metadata: { a: 'b' } })
    const numbered = await submit({ url, column: 3, header: true })
    expect(await numbered.json()).toMatchObject({ column: 'work' })
  })

  test('accepts gzip and workbooks by their content', async () => {
    const { submit } = await createUrlService()
    const zipped = await serve(csv(gzipSync(LIST)))
    expect(await (await submit({ url: zipped.url })).json()).toMatchObject({ rows: 3 })
    const rows = '<row><c t="inlineStr"><is><t>ann@a.test</t></is></c></row>'
    const workbook = await workbookOf({ sheets: { List: rows } } as never)
    const sheet = await serve(csv(Buffer.from(workbook)))
    expect(await (await submit({ url: sheet.url })).json()).toMatchObject({ sheet: 'List' })
  })

  test('previews the file with dry_run', async () => {
    const { submit, job, left } = await createUrlService()
    const { url } = await serve(csv(LIST))
    expect(await (await submit({ url, dry_run: true })).json()).toMatchObject({
      dry_run: true,
      column: 'email',
      rows: 3,
      invalid_format_emails: 1,
    })
    expect([await job(), left()]).toEqual([undefined, []])
  })

  test('creates one job for an Idempotency-Key, and downloads once', async () => {
    const { submit, database } = await createUrlService()
    const { url, receiver } = await serve(csv(LIST))
    const headers = { 'Idempotency-Key': 'one' }
    const [first, second] = [await submit({ url }, { headers }), await submit({ url }, { headers })]
    expect(second.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await second.text()).toBe(await first.text())
    expect((await submit({ url: `${url}2` }, { headers })).status).toBe(422)
    expect(receiver.received).toHaveLength(1)
    expect(await database.db.selectFrom('job').select('id').execute()).toHaveLength(1)
  })

  test('reads an object of a bucket', async () => {
    const { submit, job, stored, clock, lines } = await createUrlService()
    const { port } = await openS3({ clock, objects: { '/lists/2026/march.csv': LIST } })
    const s3 = { ...S3, endpoint: `https://s3.example:${port}` }
    const response = await submit({ url: 's3://lists/2026/march.csv', s3 })
    expect(await response.json()).toMatchObject({ rows: 3 })
    expect(await job()).toMatchObject({ name: 'march.csv' })
    expect(await stored()).not.toMatch(/wJalr|AKIA|s3\.example|2026\//)
    expect(JSON.stringify(lines)).not.toMatch(SECRETS)
  })
})

describe('a list at a URL is refused', () => {
  test.each<[string, ReceiverOptions['answer'], number, string, RegExp]>([
    ['404', 404, 400, 'list_http_error', /answered with 404\. Check the URL\.$/],
    ['403', 403, 400, 'list_access_denied', /403\. Use a URL that needs no sign-in/],
    ['a body that ends early', { body: LIST, end: 'reset' }, 400, 'list_unreachable', /./],
    [
      'a length beyond the limit',
      { headers: { 'content-length': '104857601' }, end: 'flood' },
      413,
      'payload_too_large',
      /^The file has more than 100 MiB, the limit for a list\. Split it\.$/,
    ],
    ['a web page', csv('<!doctype html>'), 400, 'invalid_request', /is a web page \(HTML\)/],
    ['no addresses', csv('name,city\nAnn,Paris\n'), 400, 'invalid_request', /1 name, 2 city/],
    ['an empty file', csv(''), 400, 'invalid_request', /The list is empty/],
    [
      'a decompression bomb',
      csv(gzipSync(Buffer.alloc(20_000_000, 'a@b.test\n'))),
      400,
      'invalid_request',
      /times its size/,
    ],
  ])('with %s', async (_, answer, status, code, message) => {
    const { submit, job, left } = await createUrlService()
    const { url } = await serve(answer)
    const response = await submit({ url })
    const body = (await response.json()) as { code: string; error: string }
    expect([response.status, body.code]).toEqual([status, code])
    expect(body.error).toMatch(message)
    expect(body.error).not.toMatch(SECRETS)
    expect([await job(), left()]).toEqual([undefined, []])
  })

  test.each<[Body, string, RegExp]>([
    [{ url: 'http://hook.example/s3cret' }, 'invalid_list_url', /must begin with https/],
    [{ url: 'file:///etc/passwd' }, 'invalid_list_url', /must begin with https/],
    [{ url: 'https://ann:s3cret@hook.example/' }, 'invalid_list_url', /password/],
    [
      { url: 'https://inside.example/?s3cret' },
      'invalid_list_url',
      /not public\. Lists are only fetched from public addresses; the admin can allow others/,
    ],
    [{ url: 's3://lists/a.csv' }, 'invalid_list_url', /needs "s3"/],
    [{ url: 'https://hook.example/', s3: S3 }, 'invalid_list_url', /s3:\/\/bucket\/key/],
    [
      { url: 's3://lists/a.csv', s3: { ...S3, endpoint: 'http://s3cret.example' } },
      'invalid_list_url',
      /Endpoint of the bucket: It must begin with https/,
    ],
    [
      { url: 's3://lists/a.csv', s3: { ...S3, endpoint: 'minio' } },
      'invalid_list_url',
      /The endpoint of the bucket is not a URL, such as https:\/\/s3\.example\.com\.$/,
    ],
    [
      { url: 's3://lists/a.csv', s3: { ...S3, endpoint: 'javascript:alert(1)' } },
      'invalid_list_url',
      /must begin with https/,
    ],
    [
      { url: 's3://lists/a.csv', s3: { ...S3, endpoint: 'https://10.0.0.7:9000' } },
      'invalid_list_url',
      /not public/,
    ],
    [{ url: 5 }, 'invalid_request', /"url" is 5; it must be a string/],
    [{}, 'invalid_request', /"url" is missing/],
    [
      { url: 's3://lists/a.csv', s3: { ...S3, endpoint: `https://a${'/'.repeat(120_000)}x` } },
      'invalid_request',
      /^"s3\.endpoint" must/,
    ],
    [{ url: 's3://a/b', s3: 's3cret' }, 'invalid_request', /^"s3" must be an object\.$/],
    [
      { url: 's3://a/b', s3: { ...S3, secret_access_key: ['s3cret'] } },
      'invalid_request',
      /^"s3\.secret_access_key" must be a string\.$/,
    ],
    [
      { url: 's3://a/b', s3: { ...S3, secret: 's3cret' } },
      'invalid_request',
      /^"s3\.secret" is not a known field\./,
    ],
    [{ url: 'https://hook.example/', column: 0 }, 'invalid_request', /it must be at least 1/],
    [
      { url: 'https://hook.example/', column: true },
      'invalid_request',
      /must be a name of at most 1000 characters, or a number from 1/,
    ],
    [{ url: 'https://hook.example/', header: 'true' }, 'invalid_request', /true or false/],
    [
      { url: 'https://hook.example/', name: 5 },
      'invalid_request',
      /"name" is 5; it must be a string/,
    ],
    [{ url: 'https://hook.example/', metadata: 'x' }, 'invalid_request', /"metadata"/],
    [
      { url: 'https://hook.example/', webhook_url: 'http://a.example' },
      'invalid_webhook_url',
      /"webhook_url"/,
    ],
  ])('%j', async (body, code, message) => {
    const { submit, lines } = await createUrlService()
    const response = await submit(body)
    const answer = (await response.json()) as { code: string; error: string }
    expect([response.status, answer.code]).toEqual([400, code])
    expect(answer.error).toMatch(message)
    expect(answer.error).not.toMatch(SECRETS)
    expect(JSON.stringify(lines)).not.toMatch(SECRETS)
  })

  test('with credentials that the bucket does not accept', async () => {
    const { submit, clock } = await createUrlService()
    const { port } = await openS3({ clock, objects: {} })
    const s3 = { ...S3, secret_access_key: 's3cret', endpoint: `https://s3.example:${port}` }
    const answer = await (await submit({ url: 's3://lists/a.csv', s3 })).json()
    expect(answer).toMatchObject({
      code: 'list_access_denied',
      error: expect.stringMatching(/403 SignatureDoesNotMatch\. Check the credentials/),
    })
    expect(JSON.stringify(answer)).not.toMatch(SECRETS)
  })

  test('and does not count against the hourly limit of lists', async () => {
    const { submit, addAccount, addKey } = await createUrlService()
    await addAccount('acc_2', 'professional')
    const key = await addKey({ accountId: 'acc_2' })
    for (let n = 0; n < 12; n++) {
      expect((await submit({ url: 'https://10.0.0.7/' }, { key })).status).toBe(400)
    }
  })
})

describe('downloads at the same time', () => {
  /** A download that waits until it is released. */
  function heldDownload() {
    const held: (() => void)[] = []
    const download: Download = async (_, use) => {
      await new Promise<void>(resolve => void held.push(resolve))
      return use(Readable.from([Buffer.from('a@a.test\n')]))
    }
    return { held, download }
  }

  test('are limited for each account and for the service', async () => {
    const { held, download } = heldDownload()
    const { submit, addAccount, addKey } = await createUrlService({ deps: { download } })
    const url = 'https://hook.example/a.csv'
    const keys: string[] = []
    for (let n = 0; n <= DOWNLOADS_MAX / ACCOUNT_DOWNLOADS_MAX; n++) {
      await addAccount(`acc_x${n}`)
      keys.push(await addKey({ accountId: `acc_x${n}` }))
    }
    const [last, ...others] = keys.toReversed()
    const running = others.flatMap((key, n) =>
      Array.from({ length: ACCOUNT_DOWNLOADS_MAX }, () =>
        submit({ url }, { key, ip: `192.0.2.${n}` }),
      ),
    )
    await waitUntil(() => held.length === DOWNLOADS_MAX)
    const own = await submit({ url }, { key: others[0] ?? '' })
    expect([own.status, own.headers.get('Retry-After')]).toEqual([429, '5'])
    expect(await own.json()).toMatchObject({ code: 'rate_limit' })
    expect((await submit({ url }, { key: last ?? '' })).status).toBe(503)
    for (const release of held) release()
    for (const response of await Promise.all(running)) expect(response.status).toBe(200)
    const after = submit({ url }, { key: last ?? '' })
    await waitUntil(() => held.length === DOWNLOADS_MAX + 1)
    held.at(-1)?.()
    expect((await after).status).toBe(200)
  })
})
