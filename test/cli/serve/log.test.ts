import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { serveLog } from '../../../src/cli/serve/log.ts'
import { memoryContext, startEv } from '../../support/cli.ts'
import { emptyFolder } from '../../support/home.ts'

const ARGS = ['serve', '--data-dir', 'data', '--listen', '127.0.0.1:0']

/** Starts `ev serve` on a terminal. */
async function startOnTerminal(columns: number) {
  const running = startEv(ARGS, { home: emptyFolder(), columns })
  await running.printed('Press Ctrl-C', 'stderr')
  const url = /running at (\S+)\n/.exec(running.stderr)?.[1] ?? ''
  const end = async () => {
    running.signal('SIGTERM')
    return await running.ended
  }
  return { running, url, end }
}

describe.each([60, 80])('ev serve on a terminal of %i columns', columns => {
  test('starts with the URL, the sign-in link and the key, each on a line that fits', async () => {
    const { running, url, end } = await startOnTerminal(columns)
    const key = running.stdout.trim()
    await end()
    expect(key).toMatch(/^ev_live_\w+$/)
    const [first, ...rest] = running.stderr.split('\n')
    expect(first).toMatch(/^ev \d+\.\d+\.\d+ is running at http:\/\/127\.0\.0\.1:\d+$/)
    expect(rest.slice(1, 3)).toEqual([
      'Dashboard (this link signs you in once, within an hour):',
      expect.stringMatching(new RegExp(`^  ${url}/welcome/\\w{20}$`)),
    ])
    expect(running.stderr).toContain('\nAPI key with all scopes (shown once, so store it now):\n  ')
    expect(running.stderr).not.toContain(key)
    for (const line of running.stderr.split('\n')) {
      expect(line.length, line).toBeLessThanOrEqual(columns)
    }
  })
})

test('ev serve on a terminal prints a line for each request, without assets, refreshes and secrets', async () => {
  const { running, url, end } = await startOnTerminal(80)
  const token = /\/welcome\/(\w+)/.exec(running.stderr)?.[1] ?? ''
  const key = running.stdout.trim()
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, { headers, redirect: 'manual' })
  const signIn = { method: 'POST', body: new URLSearchParams({ key }), headers: { origin: url } }
  const { headers } = await fetch(`${url}/sign-in`, { ...signIn, redirect: 'manual' })
  const cookie = headers
    .getSetCookie()
    .map(one => one.split(';')[0])
    .join('; ')
  await get('/overview/lists', { cookie, 'HX-Request': 'true' })
  await get('/overview', { cookie })
  const page = await (await get('/sign-in')).text()
  const asset = /\/assets\/[^"]+\.css/.exec(page)?.[0] ?? ''
  expect((await get(asset)).status).toBe(200)
  await get('/livez')
  await get(`/welcome/${token}`)
  await get('/v1/credits', { authorization: `Bearer ${key}` })
  await get('/nowhere/%1b%5b31m')
  const { stderr } = await end()
  const log = stderr.slice(stderr.indexOf('Press Ctrl-C')).split('\n').slice(1)
  const requests = log.filter(line => / \d{3} [A-Z]+ /.test(line))
  expect(requests.map(line => line.replace(/^\d\d:\d\d:\d\d |, [\d,]+ ms$/g, ''))).toEqual([
    '303 POST /sign-in',
    '200 GET /overview',
    '200 GET /sign-in',
    '200 GET /welcome/:token',
    '200 GET /v1/credits',
    '404 GET (unknown path)',
  ])
  expect(log.join('\n')).not.toContain(token)
  expect(log.join('\n')).not.toContain(key)
})

test('ev serve on a terminal prints no key and no link at later starts', async () => {
  const first = await startOnTerminal(80)
  await first.end()
  const home = emptyFolder()
  const once = startEv(ARGS, { home })
  await once.printed('API documentation:', 'stderr')
  once.signal('SIGTERM')
  await once.ended
  const again = startEv(ARGS, { home, columns: 80 })
  await again.printed('Press Ctrl-C', 'stderr')
  again.signal('SIGTERM')
  const { stdout, stderr } = await again.ended
  expect(stdout).toBe('')
  expect(stderr).not.toMatch(/welcome|API key/)
})

describe('the log of the service', () => {
  const HOSTILE = { why: 'a\u001b[31m\n12:00:00 forged', host: 'b\u202e\r\nc' }
  const logTo = (logFormat: 'json' | 'pretty', columns?: number) => {
    const { context } = memoryContext({
      home: emptyFolder(),
      ...(columns === undefined ? {} : { columns }),
    })
    return { log: serveLog(context, { log: 'info', logFormat }), stderr: context.stderr }
  }

  test.each([['json'], ['pretty']] as const)('as %s keeps untrusted text on one line', format => {
    const { log, stderr } = logTo(format)
    log.warn('mail server rejected the connection', HOSTILE)
    expect(stderr.text).toMatch(/^[^\n]*rejected the connection[^\n]*\n$/)
    expect(stderr.text.trimEnd()).not.toMatch(/[\u0000-\u001f\u202e]/)
  })

  test('for people names the cause and the facts, and wraps them between words', () => {
    const { log, stderr } = logTo('pretty', 60)
    log.error('results cannot be written; retrying', { jobId: 'job_4kq2', error: 'disk full' })
    const text = stripVTControlCharacters(stderr.text).replace(/^\d\d:\d\d:\d\d/, '12:00:00')
    expect(text).toBe(
      '12:00:00 error: results cannot be written; retrying: disk\nfull (job ID: job_4kq2)\n',
    )
  })

  test('as JSON has all requests', () => {
    const { log, stderr } = logTo('json')
    log.info('request', { method: 'GET', route: '/assets/:version/:name', status: 200, ms: 1 })
    expect(JSON.parse(stderr.text)).toMatchObject({
      level: 'info',
      message: 'request',
      status: 200,
    })
  })
})
