import { expect, onTestFinished, test } from 'vitest'
import { ensureSetting } from '../../../src/cluster/cluster-settings.ts'
import { cluster } from '../../support/cluster-cli.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { waitUntil } from '../../support/wait.ts'

const LISTEN = [
  '--metrics-listen',
  '127.0.0.1:0',
  '--dns-check-names',
  'off',
  '--log-format',
  'json',
]

/** Returns the base URL of health and metrics from the log. */
const watchUrl = (stderr: string) => /health and metrics on (\S+?)"/.exec(stderr)?.[1] ?? ''

test('a worker serves only health and metrics on the port of --metrics-listen', async () => {
  const { worker, inside } = await cluster()
  await inside(database => ensureSetting(database, 'base-url', 'https://ev.example.com'))
  const running = worker(LISTEN, { EV_METRICS_TOKEN: 'a-token-of-16-or-more' })
  await running.printed('"started"', 'stderr')
  const get = (path: string, headers = {}) => fetch(watchUrl(running.stderr) + path, { headers })
  for (const path of ['/livez', '/readyz']) {
    const response = await get(path)
    expect([response.status, await response.json()]).toMatchObject([200, { status: 'ok' }])
  }
  expect(await (await get('/health')).json()).toMatchObject({
    status: 'ok',
    version: expect.any(String),
    database: 'ok',
    dns: 'ok',
    jobs: 0,
  })
  const metrics = await (await get('/metrics')).text()
  const lines = metrics.split('\n')
  expect(lines).toContain('ev_jobs 0')
  expect(lines).toContain('ev_members{role="worker"} 1')
  expect(lines).toContain('ev_dns_check_failed 0')
  expect(lines).toContain('ev_http_requests_total{method="GET",route="/readyz",status="200"} 1')
  expect(metrics).toMatch(/^ev_queue_entries\{state="running"\} \d+$/m)
  expect(metrics).not.toContain('ev_webhook')
  const proxied = { 'X-Forwarded-For': '192.0.2.1' }
  expect((await get('/metrics', proxied)).status).toBe(403)
  const token = (text: string) => ({ ...proxied, Authorization: `Bearer ${text}` })
  expect((await get('/metrics', token('a-token-of-16-or-more'))).status).toBe(200)
  expect((await get('/metrics', token('another-token-of-16'))).status).toBe(401)
  expect((await get('/v1/verify/single')).status).toBe(404)
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)
  await expect(get('/livez')).rejects.toThrow('fetch failed')
})

test('a worker that waits for the first service is live but not ready, and reloads its lists', async () => {
  const { worker } = await cluster()
  const running = worker(LISTEN)
  await running.printed('waiting for the first one', 'stderr')
  running.signal('SIGHUP')
  await running.printed('lists reloaded', 'stderr')
  const status = async (path: string) => (await fetch(watchUrl(running.stderr) + path)).status
  expect([await status('/livez'), await status('/readyz')]).toEqual([200, 503])
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)
})

test('a worker is not ready while its database is unavailable', async () => {
  const { worker, inside, url } = await cluster()
  await inside(database => ensureSetting(database, 'base-url', 'https://ev.example.com'))
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const running = worker(LISTEN, { EV_DATABASE: proxy.url })
  await running.printed('"started"', 'stderr')
  const status = async (path: string) => (await fetch(watchUrl(running.stderr) + path)).status
  expect(await status('/readyz')).toBe(200)
  proxy.refuse()
  expect([await status('/livez'), await status('/readyz')]).toEqual([200, 503])
  expect([await status('/health'), await status('/metrics')]).toEqual([200, 200])
  proxy.accept()
  await waitUntil(async () => (await status('/readyz')) === 200)
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)
})

test('without --metrics-listen a worker opens no port', async () => {
  const { worker, inside } = await cluster()
  await inside(database => ensureSetting(database, 'base-url', 'https://ev.example.com'))
  const running = worker(['--log-format', 'json'])
  await running.printed('"started"', 'stderr')
  expect(watchUrl(running.stderr)).toBe('')
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)
})
