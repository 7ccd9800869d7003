import { once } from 'node:events'
import {
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isWellFormed } from '../../../src/accounts/key.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { selfSigned } from '../../../src/simulator/smtp-host/host.ts'
import { emptyFolder, type RunningCli, runEv, startEv } from '../../support/cli.ts'

const ANY_PORT = ['--listen', '127.0.0.1:0', '--helo', 'probe.example.com']

type Serving = RunningCli & {
  readonly home: string
  readonly url: string
  /** The first key, as printed to stdout. */
  readonly key: string
  ask(path: string, init?: RequestInit): Promise<Response>
}

/** Starts `ev serve` on a free port; its log lines are JSON. */
async function serve(
  args: readonly string[] = [],
  {
    home = emptyFolder(),
    environment = {},
    clock = systemClock,
    isFirst = false,
  }: {
    home?: string
    environment?: Record<string, string>
    clock?: Clock
    isFirst?: boolean
  } = {},
): Promise<Serving> {
  const ran = startEv(['serve', '--data-dir', 'data', ...ANY_PORT, ...args], {
    home,
    environment,
    isFirst,
    context: { clock },
  })
  await ran.printed('API documentation:', 'stderr')
  const url = /listening on (\S+?)"/.exec(ran.stderr)?.[1] ?? ''
  const key = ran.stdout.trim()
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

async function sentence(
  args: readonly string[],
  options: { home?: string; environment?: Record<string, string> } = {},
) {
  const { home = emptyFolder(), environment = {} } = options
  const { code, stdout, stderr } = await runEv(['serve', '--data-dir', 'data', ...args], {
    home,
    environment,
  })
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^error: .+\.\n$/)
  return { code, message: stderr }
}

describe('one SQLite file', () => {
  test.each<[how: string, url: (home: string) => string]>([
    ['the same path', home => `sqlite:${home}/db/ev.sqlite`],
    ['a path with dots', home => `sqlite:${home}/data/../db/./ev.sqlite`],
    ['a relative path', () => 'sqlite:db/ev.sqlite'],
    ['a symbolic link to the file', home => `sqlite:${home}/link.sqlite`],
    ['a symbolic link to its folder', home => `sqlite:${home}/linked/ev.sqlite`],
    ['a hard link', home => `sqlite:${home}/hard.sqlite`],
  ])('is served once, whatever the data directory: by %s', async (how, url) => {
    const home = emptyFolder()
    mkdirSync(join(home, 'db'))
    const file = join(home, 'db', 'ev.sqlite')
    const first = await serve(['--database', `sqlite:${file}`], { home })
    symlinkSync(file, join(home, 'link.sqlite'))
    symlinkSync(join(home, 'db'), join(home, 'linked'))
    if (how === 'a hard link') linkSync(file, join(home, 'hard.sqlite'))
    const args = ['--data-dir', 'other', ...ANY_PORT, '--database', url(home)]
    expect(await sentence(args, { home })).toEqual({
      code: 74,
      message: expect.stringMatching(
        how === 'a hard link'
          ? /hard\.sqlite has 2 names \(hard links\)/
          : /Another "ev serve" is running on the database \S+\.sqlite\. Stop it first/,
      ),
    })
    first.signal('SIGTERM')
    await first.ended
    rmSync(join(home, 'hard.sqlite'), { force: true })
    const second = await serve(['--data-dir', 'other', '--database', `sqlite:${file}`], { home })
    second.signal('SIGTERM')
    await second.ended
  })

  test('is open to ev bulk and ev jobs beside the service', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), 'email\nvalid@example.com\n')
    const at = ['--database', `sqlite:${home}/ev.sqlite`]
    const { signal, ended } = await serve(at, { home })
    const bulk = ['bulk', 'list.csv', '--sandbox', '--data-dir', 'other', ...at]
    expect((await runEv(bulk, { home })).code).toBe(0)
    const jobs = await runEv(['jobs', 'list', '--json', '--data-dir', 'other', ...at], { home })
    expect(jobs.code).toBe(0)
    signal('SIGTERM')
    await ended
  })
})

describe.concurrent('--host and --port', () => {
  test('change the host and the port of the listen address', async () => {
    const running = startEv(['serve', '--data-dir', 'data', '--host', 'localhost', '--port', '0'], {
      home: emptyFolder(),
    })
    await running.printed('API documentation:', 'stderr')
    expect(running.stderr).toMatch(/listening on http:\/\/localhost:\d+"/)
    running.signal('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
  })

  test.each([
    [['--port', 'x'], '--port is "x"; it takes a whole number from 0 to 65535.'],
    [['--port', '1', '--listen', '127.0.0.1:0'], 'exclude each other'],
    [['--host', '0.0.0.0', '--port', '80'], 'ev does not serve plain HTTP on 0.0.0.0:80'],
  ])('rejects %j', async (args, message) => {
    expect((await sentence(args)).message).toContain(message)
  })
})

describe.concurrent('the first start', () => {
  test('creates an account and prints a key with all scopes; the next start prints none', async () => {
    const first = await serve([], { isFirst: true })
    expect(isWellFormed(first.key)).toBe(true)
    expect((await first.ask('/v1/verify/single', verify())).status).toBe(200)
    expect(await (await first.ask('/v1/credits')).json()).toMatchObject({
      data: { plan: 'enterprise' },
    })
    first.signal('SIGTERM')
    const { code, stdout, stderr } = await first.ended
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${first.key}\n` })
    expect(stderr).not.toContain(first.key)
    expect(stderr).toContain('This is plain HTTP')
    expect(stderr).toMatch(/curl -s http:\/\/127\.0\.0\.1:\d+\/v1\/verify\/single/)
    for (const line of stderr.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow()

    const again = await serve([], { home: first.home })
    expect(again.key).toBe('')
    const headers = { authorization: `Bearer ${first.key}` }
    expect((await fetch(`${again.url}/v1/credits`, { headers })).status).toBe(200)
  })

  test('creates a secret that other users cannot read', async () => {
    const { home } = await serve()
    const file = join(home, 'data', 'secret')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^[a-z0-9]{50}\n$/)
  })

  test('uses the secret in the environment instead', async () => {
    const { home } = await serve([], { environment: { EV_SECRET: 'x'.repeat(32) } })
    expect(statSync(join(home, 'data', 'secret'), { throwIfNoEntry: false })).toBeUndefined()
  })

  test('creates the account with the given plan', async () => {
    const { ask } = await serve(['--plan', 'free'])
    expect(await (await ask('/v1/credits')).json()).toMatchObject({ data: { plan: 'free' } })
  })
})

describe.concurrent('a failed start prints the cause and the remedy:', () => {
  test('a second service on the same data', async () => {
    const { home } = await serve()
    const { code, message } = await sentence(ANY_PORT, { home })
    expect({ code, message }).toMatchObject({
      code: 74,
      message: expect.stringMatching(/Another "ev serve" is running in \S+\/data\. Stop it first/),
    })
  })

  test('plain HTTP on a public address', async () => {
    const { code, message } = await sentence(['--listen', '0.0.0.0:0'])
    expect(code).toBe(78)
    expect(message).toMatch(
      /plain HTTP on 0\.0\.0\.0:0.*--tls-cert.*--trust-proxy.*--insecure-http/,
    )
  })

  test('a port that another program uses', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { code, message } = await sentence(['--listen', `127.0.0.1:${port}`])
    expect(code).toBe(74)
    expect(message).toMatch(/cannot listen on 127\.0\.0\.1:\d+: the port is already in use/)
  })

  test('a certificate without its key, and missing files', async () => {
    const alone = await sentence(['--tls-cert', 'cert.pem'])
    expect(alone).toMatchObject({ code: 78, message: expect.stringMatching(/--tls-key is not/) })
    const missing = await sentence(['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'])
    expect(missing).toMatchObject({
      code: 78,
      message: expect.stringMatching(/cert\.pem cannot be read/),
    })
  })

  test('a secret as a flag, without repeating it', async () => {
    const { code, message } = await sentence(['--metrics-token', 'not-to-be-seen-here'])
    expect(code).toBe(64)
    expect(message).toMatch(/EV_METRICS_TOKEN in the environment/)
    expect(message).not.toContain('not-to-be-seen-here')
  })

  test('a plan that is unknown or incomplete', async () => {
    const unknown = await sentence([...ANY_PORT, '--plan', 'gold'])
    expect(unknown).toMatchObject({
      code: 78,
      message: expect.stringMatching(/Unknown plan "gold".*free/),
    })
    const home = emptyFolder()
    const file = { plans: { gold: { 'credits-per-day': 5 } } }
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(file))
    const half = await sentence(ANY_PORT, { home })
    expect(half).toMatchObject({ code: 78, message: expect.stringMatching(/gold.*requests/) })
  })

  test('a secret file that does not exist', async () => {
    const environment = { EV_SECRET_FILE: 'nowhere' }
    const { code, message } = await sentence(ANY_PORT, { environment })
    expect({ code, message }).toMatchObject({
      code: 78,
      message: expect.stringMatching(/nowhere cannot/),
    })
  })
})

describe.concurrent('a service that receives SIGTERM', () => {
  test('finishes requests in flight, is no longer ready, and exits with 0', async () => {
    const delayMs = 1_499
    const delay = Promise.withResolvers<() => void>()
    const clock: Clock = {
      ...systemClock,
      after(ms, callback) {
        if (ms !== delayMs) return systemClock.after(ms, callback)
        delay.resolve(callback)
        return () => {}
      },
    }
    const { signal, printed, ended, ask } = await serve([], { clock })
    const asked = ask('/v1/verify/single', verify({ 'x-ev-sandbox-delay': `${delayMs}` }))
    const endDelay = await delay.promise
    signal('SIGTERM')
    await printed('stopping: ', 'stderr')
    endDelay()
    const answer = await asked
    expect(answer.status).toBe(200)
    expect(answer.headers.get('connection')).toBe('close')
    const { code, stderr } = await ended
    expect(code).toBe(0)
    expect(stderr).toMatch(/stopping: .*\n[\s\S]*"stopped"/)
  })
})

describe.concurrent('TLS', () => {
  test('is reloaded on SIGHUP', async () => {
    const home = emptyFolder()
    const put = (name: string) => {
      const { cert, key } = selfSigned(name)
      writeFileSync(join(home, 'cert.pem'), cert)
      writeFileSync(join(home, 'key.pem'), key)
    }
    put('old.example')
    const { url, signal, printed } = await serve(
      ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'],
      {
        home,
      },
    )
    expect(url).toMatch(/^https:/)
    const nameSeen = async () => {
      const options = { port: Number(new URL(url).port), host: '127.0.0.1' }
      const socket = connectTls({ ...options, rejectUnauthorized: false })
      await once(socket, 'secureConnect')
      const { CN } = socket.getPeerCertificate().subject
      socket.destroy()
      return CN
    }
    expect(await nameSeen()).toBe('old.example')
    put('new.example')
    signal('SIGHUP')
    await printed('certificate reloaded', 'stderr')
    expect(await nameSeen()).toBe('new.example')
  })
})

describe.concurrent('metrics', () => {
  test('have their own port if one is configured', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await new Promise(resolve => other.close(resolve))
    await serve(['--metrics-listen', `127.0.0.1:${port}`])
    const metrics = await fetch(`http://127.0.0.1:${port}/metrics`)
    expect(await metrics.text()).toContain('ev_jobs 0')
    expect((await fetch(`http://127.0.0.1:${port}/v1/credits`)).status).toBe(404)
  })
})

test('a malformed request gets a response with the headers of all responses', async () => {
  const { url } = await serve()
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write('nonsense\r\n\r\n')
  const [received] = await once(socket, 'data')
  expect(String(received)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
  expect(String(received)).toMatch(/X-RateLimit-Limit: 100\r\n/i)
  expect(String(received)).toMatch(/X-Content-Type-Options: nosniff\r\n/i)
})
