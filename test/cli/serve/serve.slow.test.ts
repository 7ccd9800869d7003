import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { emptyFolder, type Running, startEv } from '../../support/ev-process.ts'

const ANY_PORT = ['--listen', '127.0.0.1:0', '--helo', 'probe.example.com']

type Serving = Running & {
  readonly home: string
  readonly url: string
  /** The first key, as printed to stdout. */
  readonly key: string
  ask(path: string, init?: RequestInit): Promise<Response>
}

/** Starts `ev serve` on a free port; its log lines are JSON. */
async function serve(
  args: readonly string[] = [],
  { home = emptyFolder(), environment = {} } = {},
): Promise<Serving> {
  const ran = startEv(['serve', '--data-dir', 'data', ...ANY_PORT, ...args], { home, environment })
  let out = ''
  let log = ''
  ran.child.stdout?.on('data', text => {
    out += text
  })
  ran.child.stderr?.on('data', text => {
    log += text
  })
  await ran.printed('API documentation:', 'stderr')
  // stdout and stderr of a process arrive in any order.
  if (log.includes('The first key, ')) await ran.printed('\n', 'stdout')
  const url = /listening on (\S+?)"/.exec(log)?.[1] ?? ''
  const key = out.trim()
  const ask: Serving['ask'] = (path, init = {}) =>
    fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, ...init.headers },
    })
  return { ...ran, home, url, key, ask }
}

const verify = (headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-ev-sandbox': 'true', ...headers },
  body: JSON.stringify({ email: 'valid@example.com' }),
})

describe.concurrent('a service that receives SIGTERM', () => {
  test('exits at once at the second signal', async () => {
    const { child, ended, ask } = await serve()
    const asked = ask('/v1/verify/single', verify({ 'x-ev-sandbox-delay': '20000' })).catch(
      () => null,
    )
    await wait(500)
    child.kill('SIGTERM')
    await wait(200)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(130)
    expect(await asked).toBeNull()
  })
})
