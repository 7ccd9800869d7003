import { describe, expect, test } from 'vitest'
import { type ClientOptions, EvClient } from '../../src/client/client.ts'
import { createScriptedClient } from '../support/scripted-client.ts'

const GOOD = { apiKey: 'ev_live_test', baseUrl: 'https://ev.example' }

describe('an ID in a path', () => {
  test.each(['', '.', '..'])('is never %j, which leads to another path', async id => {
    const { urls, fetch } = recordingFetch()
    const client = new EvClient({ ...GOOD, baseUrl: 'https://ev.example', fetch })
    const calls = [
      () => client.jobs.get(id),
      () => client.jobs.delete(id),
      () => client.keys.delete(id),
      () => client.webhooks.delete(id),
      () => client.webhooks.get(id),
      () => client.accounts.get(id),
      () => client.schedules.delete(id),
    ]
    for (const call of calls) await expect((async () => call())()).rejects.toThrow(TypeError)
    expect(urls).toEqual([])
  })

  test('is encoded', async () => {
    const { urls, fetch } = recordingFetch()
    const client = new EvClient({ ...GOOD, baseUrl: 'https://ev.example', fetch })
    await client.jobs.get('../keys?x#y')
    expect(urls).toEqual(['https://ev.example/v1/jobs/..%2Fkeys%3Fx%23y'])
  })
})

describe('a client', () => {
  test.each([
    'https://ev.example',
    'https://ev.example/',
    'https://ev.example/v1',
    'https://ev.example/v1/',
  ])('accepts the base URL %s', async baseUrl => {
    const { urls, fetch } = recordingFetch()
    await new EvClient({ ...GOOD, baseUrl, fetch }).credits()
    expect(urls).toEqual(['https://ev.example/v1/credits'])
  })

  test.each([
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/v1/credits'],
    ['http://localhost:8080', 'http://localhost:8080/v1/credits'],
    ['http://[::1]:8080', 'http://[::1]:8080/v1/credits'],
    ['https://www.example.com/ev/', 'https://www.example.com/ev/v1/credits'],
  ])('accepts %s', async (baseUrl, url) => {
    const { urls, fetch } = recordingFetch()
    await new EvClient({ ...GOOD, baseUrl, fetch }).credits()
    expect(urls).toEqual([url])
  })

  test.each<[string, Partial<ClientOptions>, RegExp]>([
    ['no key', { apiKey: '' }, /apiKey/],
    ['an undefined key', JSON.parse('{"apiKey": null}'), /apiKey/],
    ['a key with a line break', { apiKey: 'ev_live_a\n' }, /apiKey/],
    ['no base URL', { baseUrl: '' }, /baseUrl/],
    ['a base URL without https://', { baseUrl: 'ev.example' }, /"https:.*not "ev\.example"/],
    ['a base URL with another scheme', { baseUrl: 'ftp://ev.example' }, /baseUrl/],
    ['a base URL with a query', { baseUrl: 'https://ev.example?a' }, /baseUrl/],
    ['a base URL with a password', { baseUrl: 'https://a:b@ev.example' }, /apiKey/],
    ['an unencrypted key', { baseUrl: 'http://ev.example' }, /allowHttp/],
    ['a remote machine', { baseUrl: 'http://127.0.0.1.example' }, /allowHttp/],
    [
      'a timeout of zero',
      { timeoutMs: 0 },
      /timeoutMs must be a whole number of at least 1, not 0/,
    ],
    ['negative retries', { retries: -1 }, /retries/],
    ['a fractional number of retries', { retries: 0.5 }, /retries/],
  ])('is refused with %s', (_, options, message) => {
    expect(() => new EvClient({ ...GOOD, ...options })).toThrow(message)
  })

  test('does not repeat an invalid key', () => {
    expect(() => new EvClient({ ...GOOD, apiKey: 'ev live secret' })).not.toThrow(/secret/)
  })

  test('sends the key unencrypted with allowHttp', () => {
    const options = { ...GOOD, baseUrl: 'http://ev:8080', allowHttp: true }
    expect(new EvClient(options)).toBeInstanceOf(EvClient)
  })

  test('has methods that work when detached', async () => {
    const { credits, waitForJob } = createScriptedClient([
      { json: { data: 1, status: 'completed' } },
    ]).client
    expect(await credits()).toBe(1)
    expect(await waitForJob('job_1')).toMatchObject({ status: 'completed' })
  })
})

describe('a list', () => {
  test('is distinguished from a batch with names', async () => {
    const { client, asked } = createScriptedClient([{ json: {} }])
    await client.batch(['a@example.com'])
    await client.batch({ items: [{ email: 'a@example.com', id: '7' }], name: 'March' })
    expect(asked.map(({ body }) => body)).toEqual([
      { emails: ['a@example.com'] },
      { items: [{ email: 'a@example.com', id: '7' }], name: 'March' },
    ])
  })

  test.each([
    ['text', () => 'email\na@example.com\n', 'list.csv'],
    ['bytes', () => new TextEncoder().encode('email\na@example.com\n'), 'list.csv'],
    ['a stream', () => new Blob(['email\na@example.com\n']).stream(), 'list.csv'],
    ['a blob', () => new Blob(['email\na@example.com\n']), 'list.csv'],
    ['a file', () => new File(['email\na@example.com\n'], 'march.csv'), 'march.csv'],
  ])('is sent as a file from %s, and resent after a failure', async (_, list, filename) => {
    const { client, asked } = createScriptedClient([{ status: 503 }, { json: {} }])
    await client.file(list(), { column: 1, header: true, name: undefined })
    const sent = await Promise.all(asked.map(({ body }) => fieldsOf(body as FormData)))
    const fields = [
      ['column', '1'],
      ['header', 'true'],
      ['file', `${filename}: email\na@example.com\n`],
    ]
    expect(sent).toEqual([fields, fields])
    // Only fetch knows the boundary of the parts.
    expect(asked.map(({ headers }) => headers.get('content-type'))).toEqual([null, null])
  })

  test('has the given name', async () => {
    const { client, asked } = createScriptedClient([{ json: {} }])
    await client.file('a@example.com', { filename: 'april.txt' })
    expect(await fieldsOf(asked[0]?.body as FormData)).toEqual([
      ['file', 'april.txt: a@example.com'],
    ])
  })
})

function recordingFetch() {
  const urls: string[] = []
  const fetch = async (url: string) => {
    urls.push(url)
    return Response.json({ data: {} })
  }
  return { urls, fetch }
}

const fieldsOf = (form: FormData) =>
  Promise.all(
    [...form].map(async ([name, value]) => [
      name,
      typeof value === 'string' ? value : `${value.name}: ${await value.text()}`,
    ]),
  )
